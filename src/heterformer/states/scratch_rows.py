"""Rows of numbers that are kept for as long as a pass over a network needs them."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from heterformer.arrays import Ints
from heterformer.errors import InputError
from heterformer.states.positioned import read_rows, write_rows


class ScratchRows:
    """Rows of equal shape in a temporary file, written in any order; all are float32.

    The file has no name, so that it is gone with the process; memory holds a byte for each of ``count`` rows.
    """

    def __init__(self, count: int, folder: Path | None = None) -> None:
        self._folder, self._shape = folder, torch.Size()
        self._is_written = np.zeros(count, dtype=bool)
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - as long as self

    def missing(self, rows: Ints) -> Ints:
        """Those of ``rows`` that are not written yet, ascending and each once."""
        missing: Ints = np.unique(rows[~self._is_written[rows]])
        return missing

    def write(self, rows: Ints, values: Tensor) -> None:
        """Write (n, ...) values; the first ones decide what shape a row has."""
        self._shape = values.shape[1:]
        try:
            write_rows(self._file.fileno(), values.float().numpy(), rows)
        except OSError as error:
            place = self._folder or tempfile.gettempdir()
            raise InputError(f"{place}: vectors cannot be stored ({error.strerror}).") from error
        self._is_written[rows] = True

    def read(self, rows: Ints) -> Tensor:
        """(n, ...): a copy of rows that are written."""
        return self._read(rows, self._shape)

    def read_last(self, rows: Ints) -> Tensor:
        """(n, ...): a copy of the last entry along the first axis of each row, such as (d,) of (S, d)."""
        return self._read(rows, self._shape[1:])

    def _read(self, rows: Ints, shape: torch.Size) -> Tensor:
        """The end of each row, of that shape."""
        values = np.empty((len(rows), *shape), dtype=np.float32)
        row_bytes = values.itemsize * self._shape.numel()
        read_rows(self._file.fileno(), values, rows, row_bytes, row_bytes - values.itemsize * shape.numel())
        return torch.from_numpy(values)
