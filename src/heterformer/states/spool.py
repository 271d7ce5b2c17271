"""What texts give to their neighbours, on the disk: written once, then read row by row wherever it lies."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import DTypeLike, NDArray

from heterformer.arrays import Ints, mapped
from heterformer.errors import InputError
from heterformer.files import readable, replace_folder

Write = Callable[[int, NDArray[Any]], None]
ABOUT, NUMBERS, STATES = "about.json", "numbers.npy", "states.npy"


@dataclass(frozen=True)
class StateSpool:
    """A memory-mapped row for each of some texts, found by the text's number."""

    numbers: Ints  # (N,) ascending
    states: NDArray[Any]  # (N, S, d)
    about: dict[str, Any]  # what its writer wanted to remember

    @classmethod
    def open(cls, folder: Path) -> StateSpool | None:
        """What ``write_spool`` completed there, or nothing if that is missing or damaged."""
        try:
            folder = readable(folder)
            about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
            spool = cls(mapped(folder / NUMBERS), mapped(folder / STATES), dict(about))
        except (OSError, ValueError, TypeError, EOFError):
            return None
        return spool if len(spool.numbers) == len(spool.states) else None

    def rows(self, numbers: Ints) -> NDArray[Any]:
        """(n, S, d): a copy of the rows of these texts, in the stored type."""
        place = np.searchsorted(self.numbers, numbers)
        if (place == len(self.numbers)).any() or (self.numbers[place] != numbers).any():
            missing = np.setdiff1d(numbers, self.numbers)
            raise KeyError(f"text {missing[0]} and {len(missing) - 1} more are not among the spool's texts")
        rows: NDArray[Any] = self.states[place]
        return rows


@contextmanager
def write_spool(
    folder: Path, numbers: Ints, shape: Sequence[int], dtype: DTypeLike, about: dict[str, Any]
) -> Iterator[Write]:
    """Gives ``write(start, rows)``; the spool of the ascending ``numbers`` appears once all is written.

    ``about`` may still change until then. Should anything fail, no spool is left.
    """
    try:
        with replace_folder(folder) as partial:
            with (partial / STATES).open("wb") as file:
                yield _writer(file, (len(numbers), *shape), np.dtype(dtype))
            np.save(partial / NUMBERS, numbers, allow_pickle=False)
            (partial / ABOUT).write_text(json.dumps(about), encoding="utf-8")
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"{folder}: the states of texts cannot be stored ({reason}).") from error


def _writer(file: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Write:
    """Plain writes: through a memory map a full disk would kill the process without a word."""
    header = {"descr": npy.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    npy.write_array_header_1_0(file, header)
    first, row = file.tell(), int(np.prod(shape[1:])) * dtype.itemsize

    def write(start: int, rows: NDArray[Any]) -> None:
        file.seek(first + start * row)
        file.write(np.ascontiguousarray(rows, dtype).tobytes())

    return write
