"""Positive pairs: for each query another of its true targets, whenever one is asked for."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from heterformer.arrays import Ints, ranges
from heterformer.batches.randomness import uniform
from heterformer.batches.visible import VisibleNetwork
from heterformer.network.schema import Relation
from heterformer.network.split.pairs import Pairs


def fresh_positives(
    visible: VisibleNetwork, pairs: Pairs, key: np.uint64, relation: Relation | None = None
) -> Pairs:
    """The same queries, each with a key drawn from its visible targets of a predicted relation.

    Uniformly or, if its edges have weights, in proportion to them.
    A draw depends on ``key`` and the query alone. A query of which no target is visible keeps its own key.
    """
    schema = visible.network.schema
    relation = relation or schema.predicted[0]
    view = visible.adjacency(relation.source, relation.target)
    queries = np.ascontiguousarray(pairs[:, 0])
    first, count = view.rank(view.adjacency.indptr[queries]), view.counts(queries)
    entries = view.position(ranges(first, first + count))
    # The entries of a query are of all edge types: it is no target of those that point at it.
    forward = view.adjacency.edge_type[entries] == schema.edge_types.index(relation.forward)
    row = np.repeat(np.arange(len(queries)), count)[forward]
    targets = view.adjacency.neighbor[entries[forward]]
    random = uniform(key, queries, 1)[:, 0]
    if view.adjacency.weight is not None:
        chosen, some = _by_weight(row, view.adjacency.weight[entries[forward]], random)
    else:
        count = np.bincount(row, minlength=len(queries))
        chosen, some = np.cumsum(count) - count + np.floor(random * count).astype(np.int64), count > 0
    keys = pairs[:, 1].copy()
    keys[some] = targets[chosen[some]]
    return np.stack([queries, keys], axis=1)


def _by_weight(
    row: Ints, weights: NDArray[np.float32], random: NDArray[np.float64]
) -> tuple[Ints, NDArray[np.bool_]]:
    """For each row an edge of positive weight, by its random number; and whether it has any."""
    total = np.bincount(row, weights, minlength=len(random))
    ends = np.cumsum(weights, dtype=np.float64)
    before = np.cumsum(total) - total
    chosen = np.searchsorted(ends, before + random * total, side="right")
    # Sums are rounded: the edge must be the row's own, and have a weight.
    own = np.flatnonzero(weights > 0)
    first, stop = np.searchsorted(row[own], [np.arange(len(random)), np.arange(1, len(random) + 1)])
    some = stop > first
    place = np.clip(np.searchsorted(own, chosen), first, np.maximum(stop - 1, first))
    return own[np.minimum(place, max(len(own) - 1, 0))] if len(own) else chosen, some
