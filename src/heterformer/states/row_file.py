"""Many rows of numbers on disk, written part by part: what a kill leaves behind is not computed again."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import DTypeLike, NDArray

from heterformer.arrays import Ints
from heterformer.errors import InputError
from heterformer.files import reading, replace_file, writing
from heterformer.states.positioned import read_rows

PART = 4096  # rows that are written at once


def kept_array(path: Path, make: Callable[[], NDArray[Any]]) -> NDArray[Any]:
    """The array stored at ``path``; made and stored the first time."""
    if not path.exists():
        with replace_file(path) as partial, partial.open("wb") as file:
            np.save(file, make(), allow_pickle=False)
    with reading(path, "remove its folder and start again"):
        array: NDArray[Any] = np.load(path, allow_pickle=False)
    return array


class RowFile:
    """``count`` rows of equal shape in a ``.npy`` file, and beside it a list of the parts that are written.

    Rows are read into memory of their own. Several writers can share the file, each with a number and a list
    of its own; the first must have opened it before the others.
    """

    def __init__(
        self,
        path: Path,
        count: int,
        shape: tuple[int, ...],
        dtype: DTypeLike,
        part: int = PART,
        writer: int = 0,
        *,
        create: bool = True,
    ) -> None:
        """Make the file, or go on with one that is there; ``part`` rows are written at once."""
        self.path, self.count, self.part = path, count, part
        self.shape, self.dtype = shape, np.dtype(dtype)
        self._header = _npy_header((count, *shape), self.dtype)
        self._own_list = path.with_suffix(f".{writer}.done")
        if create:
            self._create()

    @classmethod
    def open(cls, path: Path) -> RowFile:
        """A file to read from; ``ValueError`` if it is not as long as it says."""
        with path.open("rb") as file:
            npy.read_magic(file)
            shape, _, dtype = npy.read_array_header_1_0(file)
        if not shape or dtype.hasobject:
            raise ValueError(f"{path} holds no rows of numbers")
        rows = cls(path, shape[0], shape[1:], dtype, create=False)
        if path.stat().st_size != rows.offset(rows.count):
            raise ValueError(f"{path} has another length than {rows.offset(rows.count)} bytes")
        return rows

    def _create(self) -> None:
        if not self.path.exists():
            for list_of_parts in self._lists():
                list_of_parts.unlink()  # says nothing about a file that is gone
        with writing(self.path), self.path.open("ab") as file:
            if file.tell() < len(self._header):
                file.truncate(0)
                file.write(self._header)
            file.truncate(self.offset(self.count))

    def offset(self, row: int) -> int:
        """Where in the file a row begins."""
        return len(self._header) + row * self.row_bytes

    @property
    def row_bytes(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize

    def parts(self) -> list[tuple[int, int]]:
        """All parts, as (first row, row after the last)."""
        return [(start, min(start + self.part, self.count)) for start in range(0, self.count, self.part)]

    def missing(self) -> Iterator[tuple[int, int]]:
        """The parts that are still to be written."""
        written = self._written()
        return (part for part in self.parts() if part not in written)

    @property
    def is_complete(self) -> bool:
        """Whether all rows are written; a file without any list of parts was written as a whole."""
        return not self._lists() or sum(stop - start for start, stop in self._written()) == self.count

    def write(self, start: int, values: NDArray[Any]) -> None:
        """Write one whole part, then note that it is written: in this order, whenever a kill comes."""
        with writing(self.path), self.path.open("r+b") as file:
            file.seek(self.offset(start))
            file.write(np.ascontiguousarray(values, dtype=self.dtype).tobytes())
            file.flush()
            os.fsync(file.fileno())
        with self._own_list.open("a", encoding="ascii") as file:
            file.write(f"{start} {start + len(values)}\n")

    def read(self, rows: Ints | slice) -> NDArray[Any]:
        """A copy of the chosen rows."""
        indices = np.arange(*rows.indices(self.count)) if isinstance(rows, slice) else rows
        return self._read(np.empty((len(indices), *self.shape), dtype=self.dtype), indices, 0)

    def read_last(self, rows: Ints) -> NDArray[Any]:
        """A copy of the last entry along the first axis of the chosen rows, such as (d,) of (S, d)."""
        values = np.empty((len(rows), *self.shape[1:]), dtype=self.dtype)
        return self._read(values, rows, self.row_bytes - self.row_bytes // max(self.shape[0], 1))

    def _read(self, values: NDArray[Any], rows: Ints, skipped: int) -> NDArray[Any]:
        """Fill ``values`` with what comes after the first ``skipped`` bytes of each row."""
        with self.path.open("rb", buffering=0) as file:
            start = len(self._header) + skipped
            if not read_rows(file.fileno(), values, rows, self.row_bytes, start):
                raise InputError(f"{self.path}: is shorter than it was; remove it and start again.")
        return values

    def _written(self) -> set[tuple[int, int]]:
        lines = [line for path in self._lists() for line in path.read_text("ascii").splitlines(keepends=True)]
        whole = [line.split() for line in lines if line.endswith("\n")]  # a kill may have cut the last one
        return {(int(start), int(stop)) for start, stop in whole}

    def _lists(self) -> list[Path]:
        return [p for p in self.path.parent.glob("*.done") if p.name.rsplit(".", 2)[0] == self.path.stem]


def _npy_header(shape: tuple[int, ...], dtype: np.dtype[Any]) -> bytes:
    header = io.BytesIO()
    description = {"descr": npy.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    npy.write_array_header_1_0(header, description)
    return header.getvalue()
