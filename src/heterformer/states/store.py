"""The states of texts on disk: written part by part, found by the texts' rows.

A folder with ``numbers.npy`` (the texts, ascending), ``states.npy`` (a row for each) and the lists of parts
that are written. Cached training adds ``about.json``, which says what its states are of.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from heterformer.arrays import Ints
from heterformer.distributed import ProcessGroup
from heterformer.errors import InputError
from heterformer.files import readable, replace_folder
from heterformer.progress import progress_bar
from heterformer.states.row_file import PART, RowFile, kept_array
from heterformer.stored import map_array

ABOUT, NUMBERS, STATES = "about.json", "numbers.npy", "states.npy"


class StateStore:
    """A row of numbers for each of some texts. Several processes can fill it, and any number read it."""

    def __init__(self, text_rows: Ints, file: RowFile, about: dict[str, Any] | None = None) -> None:
        self.text_rows, self.file = text_rows, file  # text rows ascend
        self.about = about or {}  # what its writer wants to remember

    @classmethod
    def create(
        cls,
        folder: Path,
        text_rows: Ints,
        shape: tuple[int, ...],
        dtype: DTypeLike,
        part: int = PART,
        writer: int = 0,
    ) -> StateStore:
        """Begin a store, or go on with one that a kill has left unfinished."""
        folder.mkdir(exist_ok=True)
        stored = kept_array(folder / NUMBERS, lambda: text_rows)
        return cls(stored, RowFile(folder / STATES, len(stored), shape, dtype, part, writer))

    @classmethod
    def open(cls, folder: Path) -> StateStore | None:
        """What ``new_store`` completed there, or nothing if that is missing or damaged."""
        try:
            folder = readable(folder)
            about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
            store = cls(map_array(folder / NUMBERS, kind="i8"), RowFile.open(folder / STATES), dict(about))
        except (OSError, ValueError, TypeError, EOFError, InputError):
            return None
        return store if store.file.is_complete and len(store.text_rows) == store.file.count else None

    def fill(
        self, read: Callable[[Ints, Callable[[int], None]], NDArray[Any]], name: str, processes: ProcessGroup
    ) -> None:
        """Compute what is not there yet, of several processes each its share; ``name`` is the bar's.

        ``read`` gives the rows of some texts, and calls its second argument with the number of those done.
        """
        with progress_bar(name, self.file.count, "texts") as bar:
            missing = list(self.file.missing())
            bar.advance(self.file.count - sum(stop - start for start, stop in missing))
            processes.barrier()  # until all know what is missing
            for start, stop in missing[processes.share(len(missing))]:
                rows = read(self.text_rows[start:stop], lambda n: bar.advance(n * processes.world_size))
                self.file.write(start, rows)
        processes.barrier()

    def read(self, text_rows: Ints) -> NDArray[Any]:
        """(n, S, d): a copy of the rows of these texts, in the stored type."""
        return self.file.read(self._positions(text_rows))

    def read_last(self, text_rows: Ints) -> NDArray[Any]:
        """(n, d): a copy of the last state of each of these texts."""
        return self.file.read_last(self._positions(text_rows))

    def _positions(self, text_rows: Ints) -> Ints:
        position = np.searchsorted(self.text_rows, text_rows)
        if (position == len(self.text_rows)).any() or (self.text_rows[position] != text_rows).any():
            missing = np.setdiff1d(text_rows, self.text_rows)
            raise KeyError(f"text {missing[0]} and {len(missing) - 1} more are not among the stored texts")
        return position


@contextmanager
def new_store(
    folder: Path,
    text_rows: Ints,
    shape: tuple[int, ...],
    dtype: DTypeLike,
    about: dict[str, Any],
    part: int = PART,
) -> Iterator[StateStore]:
    """A store to fill, which appears at ``folder`` once all of it is written.

    ``about`` may still change until then. Should anything fail, no store is left.
    """
    try:
        with replace_folder(folder) as partial:
            store = StateStore.create(partial, text_rows, shape, dtype, part)
            yield store
            if missing := list(store.file.missing()):
                raise ValueError(f"{folder}: rows {missing[0][0]} to {missing[0][1]} were never written")
            (partial / ABOUT).write_text(json.dumps(about), encoding="utf-8")
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"{folder}: the states of texts cannot be stored ({reason}).") from error
