"""Pairs of nodes that a relation joins: a query and its key."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from heterformer.network.schema import Relation, Schema

Pairs = NDArray[np.int64]  # (P, 2): query row, key row


def one_per_query(sources: NDArray[np.int64], targets: NDArray[np.int64], rng: np.random.Generator) -> Pairs:
    """One edge for each distinct source, uniformly among its own; ``sources`` are ascending."""
    queries, start, count = np.unique(sources, return_index=True, return_counts=True)
    chosen = start + np.floor(rng.random(len(queries)) * count).astype(np.int64)
    return np.stack([queries.astype(np.int64), targets[chosen].astype(np.int64)], axis=1)


def pair_keys(schema: Schema, relation: Relation, pairs: Pairs) -> NDArray[np.int64]:
    """A number per pair: the same for the same two nodes, in whatever order and by whatever relation.

    Of relations that join other types the numbers do not compare.
    """
    first, second = pairs[:, 0], pairs[:, 1]
    if relation.source == relation.target:
        first, second = np.minimum(first, second), np.maximum(first, second)
    if relation.source > relation.target:  # the same number from either side
        return second * schema.counts[relation.source] + first
    return first * schema.counts[relation.target] + second
