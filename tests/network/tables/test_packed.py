"""Gzipped files that unpack to far more than they are."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from heterformer import InputError
from heterformer.network.tables import packed
from heterformer.network.tables.packed import unpacked


def test_a_file_may_unpack_to_some_times_its_size(tmp_path: Path) -> None:
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"0" * 1_000_000))  # about a kilobyte
    with path.open("rb") as raw, pytest.raises(InputError) as caught:
        unpacked(raw, path, allowance=0).read()
    assert str(caught.value).startswith(f"{path}: unpacks to more than 0.0 GB, 200 times its size; if that")
    allowance = 100 * path.stat().st_size
    with path.open("rb") as raw, pytest.raises(InputError, match="GB, 300 times its size"):
        unpacked(raw, path, allowance).read()
    with path.open("rb") as raw:
        assert len(unpacked(raw, path, allowance=1_000_000).read()) == 1_000_000
    plain = tmp_path / "t.csv"
    plain.write_bytes(b"0" * 1_000_000)
    with plain.open("rb") as raw:
        assert unpacked(raw, plain, allowance=0) is raw


def test_every_reader_has_the_bound() -> None:
    """No module of the readers opens a packed file by itself."""
    folder = Path(packed.__file__).parent
    for module in folder.glob("*.py"):
        text = module.read_text(encoding="utf-8")
        assert "GzipFile(" not in text.replace("self._file = gzip.GzipFile(", "")
        assert "gzip.open(" not in text
