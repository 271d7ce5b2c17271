"""Arrays: types, bisection row by row, ranges."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
AnyInts = NDArray[np.integer[Any]]
AnyFloats = NDArray[np.floating[Any]]
Float32s = NDArray[np.float32]
Float64s = NDArray[np.float64]
Bools = NDArray[np.bool_]


def bisect_rows(values: AnyInts, start: AnyInts, stop: AnyInts, target: AnyInts) -> NDArray[np.int64]:
    """For each row, the first position in the ascending ``values[start:stop]`` that is not below ``target``.

    All rows are searched at once, in as many steps as the longest row has bits.
    """
    low, high = np.array(start, dtype=np.int64), np.array(stop, dtype=np.int64)
    last = max(len(values) - 1, 0)
    longest = int((high - low).max(initial=0))
    for _ in range(longest.bit_length()):
        middle = (low + high) >> 1
        below = (middle < high) & (values[np.minimum(middle, last)] < target)
        low = np.where(below, middle + 1, low)
        high = np.where(below, high, np.maximum(middle, low))
    return low


def ranges(start: NDArray[np.int64], stop: NDArray[np.int64]) -> NDArray[np.int64]:
    """The concatenated positions of several ranges."""
    lengths = stop - start
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total, dtype=np.int64) + np.repeat(start - (ends - lengths), lengths).astype(np.int64)


def share_of(count: int, rank: int, world_size: int) -> slice:
    """The part of ``count`` items for one of ``world_size`` processes: even, consecutive parts."""
    return slice(count * rank // world_size, count * (rank + 1) // world_size)
