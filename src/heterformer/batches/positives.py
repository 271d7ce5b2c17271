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
    queries = np.ascontiguousarray(pairs[:, 0])
    row, targets, weights = _visible_targets(visible, queries, relation)
    random = uniform(key, queries, 1)[:, 0]
    if weights is not None:
        chosen, some = _by_weight(row, weights, random)
    else:
        count = np.bincount(row, minlength=len(queries))
        chosen, some = np.cumsum(count) - count + np.floor(random * count).astype(np.int64), count > 0
    keys = pairs[:, 1].copy()
    keys[some] = targets[chosen[some]]
    return np.stack([queries, keys], axis=1)


def log_key_frequencies(
    visible: VisibleNetwork, pairs: Pairs, fresh: bool, relation: Relation | None = None
) -> NDArray[np.float32]:
    """(N,): of each target of a predicted relation the log of its expected share of the training pairs' keys.

    It is also how often a node is a negative of other pairs. With ``fresh`` keys are drawn as
    ``fresh_positives`` does. A node that is never a key counts as one that is once.
    """
    relation = relation or visible.network.schema.predicted[0]
    nodes = visible.network.schema.counts[relation.target]
    expected = np.bincount(pairs[:, 1], minlength=nodes).astype(np.float64)
    if fresh:
        queries = np.ascontiguousarray(pairs[:, 0])
        row, targets, weights = _visible_targets(visible, queries, relation)
        drawn = np.ones(len(row)) if weights is None else weights.astype(np.float64)
        total = np.bincount(row, drawn, minlength=len(queries))
        expected = np.bincount(pairs[total == 0, 1], minlength=nodes).astype(np.float64)
        some = total[row] > 0
        expected += np.bincount(targets[some], drawn[some] / total[row[some]], minlength=nodes)
    shares = np.maximum(expected, 1.0) / max(len(pairs), 1)
    frequencies: NDArray[np.float32] = np.log(shares).astype(np.float32)
    return frequencies


def _visible_targets(
    visible: VisibleNetwork, queries: Ints, relation: Relation | None
) -> tuple[Ints, Ints, NDArray[np.float32] | None]:
    """(place of its query, target, weight) of each visible edge of the relation from one of the queries."""
    schema = visible.network.schema
    relation = relation or schema.predicted[0]
    view = visible.adjacency(relation.source, relation.target)
    start, count = view.rank(view.adjacency.indptr[queries]), view.counts(queries)
    entries = view.position(ranges(start, start + count))
    # The entries of a query are of all edge types: it is no target of those that point at it.
    entries_of_relation = view.adjacency.edge_type[entries] == schema.edge_types.index(relation.forward)
    row = np.repeat(np.arange(len(queries)), count)[entries_of_relation]
    entries = entries[entries_of_relation]
    weight = view.adjacency.weight
    return row, view.adjacency.neighbor[entries], None if weight is None else weight[entries]


def _by_weight(
    row: Ints, weights: NDArray[np.float32], random: NDArray[np.float64]
) -> tuple[Ints, NDArray[np.bool_]]:
    """For each row an edge of positive weight, by its random number; and whether it has any."""
    total = np.bincount(row, weights, minlength=len(random))
    # Shares of each row, so that small weights count as much beside another row's large ones.
    ends = np.cumsum(weights / np.where(total > 0, total, 1.0)[row])
    rows_with_weight = (total > 0).astype(np.int64)
    before = np.cumsum(rows_with_weight) - rows_with_weight
    chosen = np.searchsorted(ends, before + random * rows_with_weight, side="right")
    # Sums are rounded: the edge must be the row's own, and have a weight.
    own = np.flatnonzero(weights > 0)
    start, stop = np.searchsorted(row[own], [np.arange(len(random)), np.arange(1, len(random) + 1)])
    some = stop > start
    place = np.clip(np.searchsorted(own, chosen), start, np.maximum(stop - 1, start))
    return own[np.minimum(place, max(len(own) - 1, 0))] if len(own) else chosen, some
