"""The nodes of one type with the highest inner products: exact search, in bounded memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from heterformer.arrays import Ints

Matrix = NDArray[Any]  # (n, d) float32 or float16, usually memory-mapped
Queries = NDArray[np.float32]  # (Q, d)

ROWS_AT_ONCE = 16_384  # rows whose scores are held at a time: 24 MB of vectors of 384 numbers
ROUNDING = 1e-6  # by which a float32 product may be off, relative to the lengths of its factors
NONE: Ints = np.empty(0, dtype=np.int64)


class TopRows(NamedTuple):
    """The best rows for one query, best first; equal scores by row."""

    rows: Ints  # (k,)
    scores: NDArray[np.float64]  # (k,) inner products


class Index(Protocol):
    """Searches the vectors of one node type."""

    name: str

    def search(self, queries: Queries, k: int, without: Ints = NONE) -> list[TopRows]:
        """The ``k`` best rows for each query (all, if there are fewer), leaving out the rows ``without``."""


class ExactIndex:
    """All inner products, block by block."""

    name = "exact"

    def __init__(self, matrix: Matrix, block: int = ROWS_AT_ONCE) -> None:
        self.matrix, self.block = matrix, block

    def search(self, queries: Queries, k: int, without: Ints = NONE) -> list[TopRows]:
        queries, without = np.asarray(queries, dtype=np.float32), np.sort(without)
        top = [TopK(self.matrix, query, k) for query in queries]
        for start in range(0, len(self.matrix), self.block):
            block = np.asarray(self.matrix[start : start + self.block], dtype=np.float32)  # (b, d)
            scores = queries @ block.T  # (Q, b)
            lower, upper = np.searchsorted(without, [start, start + len(block)])
            scores[:, without[lower:upper] - start] = -np.inf
            for best, row in zip(top, scores, strict=True):
                best.update(start, row)
        return [best.top for best in top]


class TopK:
    """The best rows of the blocks seen so far, for one query."""

    def __init__(self, matrix: Matrix, query: NDArray[np.float32], k: int) -> None:
        self.matrix, self.query, self.k = matrix, query, k
        self.top = TopRows(NONE, np.empty(0))

    def update(self, start: int, scores: NDArray[np.float32]) -> None:
        """Take in the scores of one more block, which may be off by rounding."""
        near = (scores >= self._floor(start, scores)) & (scores > -np.inf)
        rows = np.concatenate([self.top.rows, start + np.flatnonzero(near)])
        if len(rows) > len(self.top.rows):
            self.top = top_rows(self.matrix, self.query, rows, self.k)

    def _floor(self, start: int, scores: NDArray[np.float32]) -> float:
        """What a score must reach to be among the best, less rounding, so that no tie is lost to it."""
        if len(self.top.rows) == self.k:
            row, floor = self.top.rows[-1], float(self.top.scores[-1])
        elif len(scores) > self.k:
            last = np.argpartition(scores, -self.k)[-self.k]
            row, floor = start + last, float(scores[last])
        else:
            return -np.inf
        length = np.linalg.norm(self.matrix[row].astype(np.float64))
        return floor - ROUNDING * float(length * np.linalg.norm(self.query))


def top_rows(matrix: Matrix, query: NDArray[np.float32], rows: Sequence[int] | Ints, k: int) -> TopRows:
    """The ``k`` best of some rows. In double precision and row by row, so that equal vectors tie exactly."""
    rows = np.asarray(rows, dtype=np.int64)
    scores = (matrix[rows].astype(np.float64) * query.astype(np.float64)).sum(1)  # (r,)
    order = np.lexsort((rows, -scores))[:k]
    return TopRows(rows[order], scores[order])
