"""Pairs of nodes that a relation joins: a query and its key."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Pairs = NDArray[np.int64]  # (P, 2): query row, key row


def one_per_query(sources: NDArray[np.int64], targets: NDArray[np.int64], rng: np.random.Generator) -> Pairs:
    """One edge for each distinct source, uniformly among its own; ``sources`` are ascending."""
    queries, start, count = np.unique(sources, return_index=True, return_counts=True)
    chosen = start + np.floor(rng.random(len(queries)) * count).astype(np.int64)
    return np.stack([queries.astype(np.int64), targets[chosen].astype(np.int64)], axis=1)


def unordered_key(
    source: NDArray[np.int64], target: NDArray[np.int64], targets: int, homogeneous: bool
) -> NDArray[np.int64]:
    """A number per pair that is the same for (a, b) and (b, a) where both ends are of one type."""
    if homogeneous:
        source, target = np.minimum(source, target), np.maximum(source, target)
    return source * targets + target
