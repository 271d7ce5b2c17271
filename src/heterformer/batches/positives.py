"""Positive pairs: for each query another of its true targets, whenever one is asked for."""

from __future__ import annotations

import numpy as np

from heterformer.arrays import ranges
from heterformer.batches.randomness import uniform
from heterformer.batches.visible import VisibleNetwork
from heterformer.network.split.pairs import Pairs


def fresh_positives(visible: VisibleNetwork, pairs: Pairs, key: np.uint64) -> Pairs:
    """The same queries, each with a key drawn uniformly from its visible targets of the predicted relation.

    A draw depends on ``key`` and the query alone. A query of which no target is visible keeps its own key.
    """
    schema = visible.network.schema
    relation = schema.predicted
    view = visible.adjacency(relation.source, relation.target)
    queries = np.ascontiguousarray(pairs[:, 0])
    first, count = view.rank(view.adjacency.indptr[queries]), view.counts(queries)
    entries = view.position(ranges(first, first + count))
    # The entries of a query are of all edge types: it is no target of those that point at it.
    forward = view.adjacency.edge_type[entries] == schema.edge_types.index(relation.forward)
    row = np.repeat(np.arange(len(queries)), count)[forward]
    targets = view.adjacency.neighbor[entries[forward]]
    count = np.bincount(row, minlength=len(queries))
    chosen = np.cumsum(count) - count + np.floor(uniform(key, queries, 1)[:, 0] * count).astype(np.int64)
    keys, some = pairs[:, 1].copy(), count > 0
    keys[some] = targets[chosen[some]]
    return np.stack([queries, keys], axis=1)
