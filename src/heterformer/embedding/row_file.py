"""Many rows of numbers on disk, written part by part: what a kill leaves behind is not computed again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from heterformer.batches.sampling import Ints
from heterformer.files import replace_file

PART = 4096  # rows that are written at once


def kept_array(path: Path, make: Callable[[], NDArray[Any]]) -> NDArray[Any]:
    """The array stored at ``path``; made and stored the first time."""
    if not path.exists():
        with replace_file(path) as partial, partial.open("wb") as file:
            np.save(file, make(), allow_pickle=False)
    array: NDArray[Any] = np.load(path, allow_pickle=False)
    return array


class RowFile:
    """``count`` rows of equal shape in a plain binary file, and beside it a list of the parts that are done.

    Rows are read through a mapping that lives as long as the call: pages of the file that nobody reads any
    more do not count as this process's memory.
    """

    def __init__(
        self, path: Path, count: int, shape: tuple[int, ...], dtype: DTypeLike, part: int | None = None
    ) -> None:
        self.path, self.count, self.part = path, count, part or PART
        self.shape, self.dtype = shape, np.dtype(dtype)
        self._done = path.with_suffix(".done")
        if not path.exists():
            self._done.unlink(missing_ok=True)  # says nothing about a file that is gone
        with path.open("ab") as file:
            file.truncate(count * self.row_bytes)

    @property
    def row_bytes(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize

    def missing(self) -> Iterator[tuple[int, int]]:
        """The parts that are still to be written, as (first row, row after the last)."""
        done = self._finished()
        for start in range(0, self.count, self.part):
            if start not in done:
                yield start, min(start + self.part, self.count)

    def write(self, start: int, values: NDArray[Any]) -> None:
        """Write one whole part, then note that it is done: in this order, whenever a kill comes."""
        with self.path.open("r+b") as file:
            file.seek(start * self.row_bytes)
            file.write(np.ascontiguousarray(values, dtype=self.dtype).tobytes())
            file.flush()
            os.fsync(file.fileno())
        with self._done.open("a", encoding="ascii") as file:
            file.write(f"{start}\n")

    def read(self, rows: Ints | slice) -> NDArray[Any]:
        """A copy of the chosen rows."""
        if self.count == 0 or self.row_bytes == 0:
            count = len(range(*rows.indices(self.count))) if isinstance(rows, slice) else len(rows)
            return np.empty((count, *self.shape), dtype=self.dtype)
        mapping = np.memmap(self.path, dtype=self.dtype, mode="r", shape=(self.count, *self.shape))
        return np.array(np.asarray(mapping)[rows])

    def _finished(self) -> set[int]:
        try:
            lines = self._done.read_text(encoding="ascii").splitlines(keepends=True)
        except FileNotFoundError:
            return set()
        return {int(line) for line in lines if line.endswith("\n")}  # a kill may have cut the last one
