"""The nodes that a query is most likely linked to: what many link to comes before what is merely as close."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from heterformer.arrays import Ints
from heterformer.network.schema import NodeType, Relation
from heterformer.network.store import Network
from heterformer.search.index import NONE, ROWS_AT_ONCE, Matrix, TopRows


def relation_to(network: Network, node_type: NodeType) -> Relation | None:
    """The first predicted relation that leads to a type, or else from it."""
    predicted = network.schema.predicted
    ends = [
        *(r for r in predicted if r.target == node_type),
        *(r for r in predicted if r.source == node_type),
    ]
    return ends[0] if ends else None


def most_likely(
    matrix: Matrix,
    query: NDArray[np.float32],
    k: int,
    added: NDArray[np.float32],
    rows: Ints | None = None,
    without: Ints = NONE,
    block: int = ROWS_AT_ONCE,
) -> TopRows:
    """The ``k`` rows with the highest inner products plus what is ``added`` (n,), best first; ties by row.

    Of ``rows`` (ascending), or of all, ``without`` some. An index of vectors cannot find them, so all are
    looked at, a block at a time.
    """
    rows = np.arange(len(matrix)) if rows is None else rows
    rows = np.setdiff1d(rows, without, assume_unique=True) if len(without) else rows
    best, scores = NONE, np.empty(0)
    for start in range(0, len(rows), block):
        some = rows[start : start + block]
        products = np.asarray(matrix[some], dtype=np.float32) @ query
        best = np.concatenate([best, some])
        scores = np.concatenate([scores, products.astype(np.float64) + added[some]])
        order = np.lexsort((best, -scores))[:k]
        best, scores = best[order], scores[order]
    return TopRows(best, scores)
