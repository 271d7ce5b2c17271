"""The door through which stored files are read."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import heterformer
from heterformer.errors import InputError
from heterformer.stored import (
    check_offsets,
    check_range,
    map_array,
    parquet_batches,
    read_arrow,
    read_json,
    read_parquet,
    validated,
)

ROOT = Path(heterformer.__file__).parent
PARSERS = {  # calls that read a stored file, and may raise anything if it is damaged
    "load": ("np",),
    "memmap": ("np",),
    "read_parquet": ("pl", "pq"),
    "ParquetFile": ("pq",),
    "read_schema": ("pq",),
    "open_file": ("ipc",),
    "safe_load": ("yaml",),
    "load_file": (),
    "safe_open": (),
}


def test_a_mapped_array_is_what_its_header_says(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.arange(6))
    assert map_array(path, kind="i8").tolist() == list(range(6))
    np.save(path, np.empty(0))
    assert map_array(path).shape == (0,)
    np.save(path, np.arange(6.0).reshape(2, 3))
    assert map_array(path, ndim=2).tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize(
    "array", [np.arange(3.0), np.arange(3, dtype=np.int32), np.zeros((2, 2), dtype=int), np.array(["a"])]
)
def test_an_array_of_another_type_is_refused(array: np.ndarray, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", array)
    with pytest.raises(InputError, match=r"a\.npy: cannot be read or is damaged \(.*\); make it again\.$"):
        map_array(tmp_path / "a.npy", "make it again", kind="i8")


def test_a_matrix_in_the_other_order_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.asfortranarray(np.arange(6.0).reshape(2, 3)))
    with pytest.raises(InputError):
        map_array(tmp_path / "a.npy", ndim=2)


def test_ranges_and_offsets(tmp_path: Path) -> None:
    check_range(np.array([0, 5, 2]), 0, 6, tmp_path)
    for wrong in ([0, -1], [6]):
        with pytest.raises(InputError, match="expected 0 to 5"):
            check_range(np.array(wrong), 0, 6, tmp_path)
    check_offsets(np.array([0, 2, 2, 5]), 5, tmp_path, longest=3)
    for wrong in ([0, 3, 2, 5], [1, 5], [0, 4], [], [0, 5]):
        with pytest.raises(InputError):
            check_offsets(np.array(wrong, dtype=np.int64), 5, tmp_path, longest=3)


def test_offsets_of_arrow_are_not_trusted(tmp_path: Path) -> None:
    offsets = pa.py_buffer(np.array([0, 900, 4], dtype=np.int64).tobytes())
    column = pa.Array.from_buffers(pa.large_string(), 2, [None, offsets, pa.py_buffer(b"abcd")])
    with pytest.raises(InputError, match=r"nodes: cannot be read or is damaged"):
        validated(column, Path("nodes"))
    letters = pa.Array.from_buffers(
        pa.large_string(), 1, [None, pa.py_buffer(np.array([0, 2]).tobytes()), pa.py_buffer(b"\xff\xfe")]
    )
    with pytest.raises(InputError, match="UTF8"):
        validated(letters, Path("nodes"))


def test_what_is_no_such_file(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"\x80 [[[")
    for read in (read_json, read_arrow, read_parquet, map_array):
        with pytest.raises(InputError) as caught:
            read(tmp_path / "x", "make it again")
        assert str(caught.value).startswith(f"{tmp_path / 'x'}: ")
        assert "\n" not in str(caught.value)


def test_a_panic_of_a_parser_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from heterformer.stored import as_series

    def panic(values: object) -> None:
        raise pl.exceptions.PanicException("index out of bounds")

    monkeypatch.setattr(pl, "from_arrow", panic)
    with pytest.raises(InputError, match="index out of bounds"):
        as_series(pa.array([1]), Path("nodes"))


def unguarded(path: Path) -> list[str]:
    """Calls of parsers that stand neither under ``reading`` nor in a ``try``."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found: list[str] = []

    def visit(node: ast.AST, guarded: bool) -> None:
        if isinstance(node, ast.With):
            guarded |= any("reading(" in ast.unparse(item.context_expr) for item in node.items)
        if isinstance(node, ast.Try):
            guarded = True
        if isinstance(node, ast.Call) and not guarded:
            called = node.func
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            owner = ast.unparse(called.value) if isinstance(called, ast.Attribute) else ""
            if name in PARSERS and (not PARSERS[name] or owner in PARSERS[name]):
                found.append(f"{path.relative_to(ROOT)}:{node.lineno}: {ast.unparse(node)[:60]}")
            if name == "loads" and "read_text" in ast.unparse(node):
                found.append(f"{path.relative_to(ROOT)}:{node.lineno}: {ast.unparse(node)[:60]}")
        for child in ast.iter_child_nodes(node):
            visit(child, guarded)

    visit(tree, False)
    return found


def test_no_stored_file_is_parsed_elsewhere_without_a_guard() -> None:
    calls = [call for path in sorted(ROOT.rglob("*.py")) for call in unguarded(path)]
    assert calls == []


def test_a_parquet_table_is_validated_before_polars_sees_it(tmp_path: Path) -> None:
    """Text that is not UTF-8: Arrow reads it without a word, and polars would trust it."""
    offsets = pa.py_buffer(np.array([0, 2], dtype=np.int32).tobytes())
    letters = pa.Array.from_buffers(pa.string(), 1, [None, offsets, pa.py_buffer(b"\xff\xfe")])
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": letters}), path)
    for read in (read_parquet, lambda *given: list(parquet_batches(*given[:1], remedy=given[1]))):
        with pytest.raises(InputError, match=r"a\.parquet: .*UTF8.*; make it again\.$"):
            read(path, "make it again")
