"""Hashes of contents that do not depend on the machine or on library versions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]
BASE = np.uint64(0x5851F42D4C957F2D)  # odd, so that its powers are all different for a long while
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def mixed(values: Hashes) -> Hashes:
    """The finaliser of SplitMix64 (Steele, Lea and Flood, 2014): every input bit reaches every output bit."""
    values = values + GOLDEN
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def sequence_hashes(values: NDArray[Any], offsets: NDArray[np.int64]) -> Hashes:
    """A hash of each ``values[offsets[i]:offsets[i + 1]]``: of its items, their order and number."""
    lengths = np.diff(offsets)
    positions = np.arange(len(values)) - np.repeat(offsets[:-1] - offsets[0], lengths)
    powers = np.cumprod(np.full(int(lengths.max(initial=0)), BASE, dtype=np.uint64), dtype=np.uint64)
    terms = mixed(values.astype(np.uint64)) * powers[positions]
    sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(terms, dtype=np.uint64)])
    bounds = offsets - offsets[0]
    return mixed(sums[bounds[1:]] - sums[bounds[:-1]] + lengths.astype(np.uint64) * GOLDEN)


def string_hashes(strings: pa.ChunkedArray) -> Hashes:
    """A hash of each string's UTF-8 bytes."""
    parts = [_chunk_hashes(chunk.cast(pa.large_binary())) for chunk in _short(strings)]
    return np.concatenate([*parts, np.empty(0, dtype=np.uint64)])


def string_hash(string: str) -> np.uint64:
    """The hash of one string."""
    return np.uint64(string_hashes(pa.chunked_array([[string]]))[0])


def _short(strings: pa.ChunkedArray, size: int = 1 << 18) -> Iterable[pa.Array]:
    for chunk in strings.chunks:
        for start in range(0, len(chunk), size):
            yield chunk.slice(start, size)


def _chunk_hashes(chunk: pa.LargeBinaryArray) -> Hashes:
    _, offsets, data = chunk.buffers()
    if data is None:
        return sequence_hashes(np.empty(0, dtype=np.uint8), np.zeros(len(chunk) + 1, dtype=np.int64))
    bounds = np.frombuffer(offsets, dtype=np.int64)[chunk.offset : chunk.offset + len(chunk) + 1]
    return sequence_hashes(np.frombuffer(data, dtype=np.uint8)[bounds[0] : bounds[-1]], bounds)
