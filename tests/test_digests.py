"""Digests of files and of Parquet tables."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest

from heterformer.digests import (
    changed_files,
    check_footer,
    check_parquet,
    check_sizes,
    seal_parquet,
    stored_digests,
    write_digests,
)
from heterformer.errors import InputError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "deep").mkdir()
    (tmp_path / "a").write_bytes(b"aaa")
    (tmp_path / "deep" / "b").write_bytes(b"bbbb")
    write_digests(tmp_path)
    return tmp_path


def test_all_files_are_noted_with_their_sizes(folder: Path) -> None:
    noted = stored_digests(folder, "")
    assert noted is not None
    assert {name: size for name, (size, _) in noted.items()} == {"a": 3, "deep/b": 4}
    assert list(changed_files(folder, "")) == []


def test_a_changed_byte_keeps_the_size_and_not_the_digest(folder: Path) -> None:
    (folder / "deep" / "b").write_bytes(b"bbxb")
    check_sizes(folder, "make it again")
    (error,) = changed_files(folder, "make it again")
    problem = "its contents have changed since it was written"
    assert str(error) == f"{folder / 'deep' / 'b'}: {problem}; make it again."


def test_another_size_is_seen_without_reading(folder: Path) -> None:
    (folder / "a").write_bytes(b"aa")
    with pytest.raises(InputError, match="a: is damaged: it has 2 bytes, expected 3; make it again"):
        check_sizes(folder, "make it again")
    check_sizes(folder, "make it again", without=("a",))
    (folder / "a").unlink()
    with pytest.raises(InputError, match="a: is missing; make it again"):
        check_sizes(folder, "make it again")


def test_a_sealed_table_is_read_by_everybody(tmp_path: Path) -> None:
    frame = pl.DataFrame({"x": list(range(1000)), "y": [f"y{i}" for i in range(1000)]})
    path = tmp_path / "x.parquet"
    frame.write_parquet(path)
    assert check_parquet(path) is False
    seal_parquet(path)
    assert check_parquet(path)
    assert pl.read_parquet(path).equals(frame)
    assert pq.read_table(path).num_rows == 1000


def test_every_changed_byte_of_a_sealed_table_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pl.DataFrame({"x": [1, 2, 3]}).write_parquet(path)
    seal_parquet(path)
    data = path.read_bytes()
    seal = data.index(b"heterformer-seal")
    for place in range(len(data)):
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        if seal <= place < seal + 16 or place in range(len(data) - 8, len(data) - 4):
            continue  # without its word, or with another length of the footer, there is no seal
        with pytest.raises(InputError):
            check_parquet(path)


def test_a_changed_footer_is_seen_when_a_table_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pl.DataFrame({"x": [1, 2, 3]}).write_parquet(path)
    seal_parquet(path)
    check_footer(path)
    data = bytearray(path.read_bytes())
    data[-20] ^= 1
    path.write_bytes(data)
    with pytest.raises(InputError, match="its contents have changed"):
        check_footer(path)
