"""The best of some rows of a type: exact, or with an approximate index for as long as that pays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from heterformer.arrays import Ints
from heterformer.search.index import NONE, ROWS_AT_ONCE, Index, Matrix, TopRows, top_rows

FEW = 100_000  # rows among which exact search takes less than asking an index again and again


def search_among(
    index: Index,
    matrix: Matrix,
    query: NDArray[np.float32],
    k: int,
    rows: Ints,
    without: Ints = NONE,
    few: int = FEW,
) -> TopRows:
    """The ``k`` best of ``rows`` (ascending), ``without`` some.

    Exact search looks at these rows alone. An approximate index is asked for more and more results until
    enough of them are among the rows; if they are ``few``, or it does not find enough, search is exact.
    """
    rows = np.setdiff1d(rows, without, assume_unique=True) if len(without) else rows
    if index.name == "approximate" and len(rows) > few:
        count = k * len(matrix) // len(rows) + k
        while count < len(rows):
            (result,) = index.search(query[None], count, without)
            kept = np.isin(result.rows, rows, assume_unique=True)
            if kept.sum() >= k:
                return TopRows(result.rows[kept][:k], result.scores[kept][:k])
            count *= 4
    return best_among(matrix, query, rows, k)


def best_among(
    matrix: Matrix, query: NDArray[np.float32], rows: Ints, k: int, block: int = ROWS_AT_ONCE
) -> TopRows:
    """The same by exact search, a block of rows at a time."""
    best = top_rows(matrix, query, NONE, k)
    for start in range(0, len(rows), block):
        best = top_rows(matrix, query, np.concatenate([best.rows, rows[start : start + block]]), k)
    return best
