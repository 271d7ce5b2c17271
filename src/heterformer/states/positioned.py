"""Rows of a file that are read and written where they stand, neighbouring ones together.

Rows are read into memory of their own and not through a memory map: the kernel would map sixteen pages around
each row, and a batch of scattered rows would hold a good part of the file.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heterformer.arrays import Ints


def read_rows(descriptor: int, values: NDArray[Any], rows: Ints, row_bytes: int, start: int) -> bool:
    """Fill ``values``, one entry for each row; false if the file ends before.

    The file's rows are ``row_bytes`` long, and the first row's entry begins at ``start``. An entry may be a
    part of its row.
    """
    if not values.size:
        return True
    size, into = values[0].nbytes, memoryview(values.reshape(-1).view(np.uint8).data)
    firsts, stops = runs(rows) if size == row_bytes else (np.arange(len(rows)), np.arange(1, len(rows) + 1))
    offsets = start + rows[firsts].astype(np.int64) * row_bytes
    spans = zip((firsts * size).tolist(), (stops * size).tolist(), offsets.tolist(), strict=True)
    return all(os.preadv(descriptor, [into[a:b]], offset) == b - a for a, b, offset in spans)


def write_rows(descriptor: int, values: NDArray[Any], rows: Ints) -> None:
    """Write each row of ``values`` to its place in a file of such rows."""
    if not values.size:
        return
    size, out = values[0].nbytes, memoryview(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data)
    firsts, stops = runs(rows)
    offsets = rows[firsts].astype(np.int64) * size
    for a, b, offset in zip((firsts * size).tolist(), (stops * size).tolist(), offsets.tolist(), strict=True):
        while a < b:  # a full disk takes a part, and then says why
            written = os.pwrite(descriptor, out[a:b], offset)
            a, offset = a + written, offset + written


def runs(rows: Ints) -> tuple[Ints, Ints]:
    """Where in ``rows`` those begin and end that follow each other: each run is one read or write."""
    firsts: Ints = np.flatnonzero(np.diff(rows, prepend=rows[0] - 2) != 1)
    return firsts, np.append(firsts[1:], len(rows))
