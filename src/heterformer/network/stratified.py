"""7:1:2 parts in which every class is met."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SHARES = (0.7, 0.1, 0.2)  # the paper's training, validation and test parts
PARTS = TRAIN, VALIDATION, TEST = 0, 1, 2
LEAST_MEMBERS = len(PARTS)  # of a class that is to be met in each


def stratified_parts(matrix: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.int64]:
    """(n,) the part of each node, given the classes of each (n, C).

    Each class is divided by itself, the one with the fewest nodes left first (after Sechidis et al., 2011).
    With one class per node, each class has its exact share of each part and at least one node there. With
    several, that holds as far as shared nodes allow; a class is always in the training part.
    """
    part = np.full(len(matrix), -1)
    left, counts = matrix.sum(0), np.zeros((matrix.shape[1], len(PARTS)), dtype=np.int64)  # (C,), (C, 3)
    shares = np.stack([_sizes(count) for count in left])  # (C, 3)
    while left.any():
        number = int(np.where(left > 0, left, len(matrix) + 1).argmin())
        nodes = rng.permutation(np.flatnonzero(matrix[:, number] & (part < 0)))
        sizes = _apportioned(len(nodes), shares[number] - counts[number])
        part[nodes] = np.repeat(PARTS, sizes)
        counts += np.stack([matrix[nodes[part[nodes] == p]].sum(0) for p in PARTS], axis=1)
        left = left - matrix[nodes].sum(0)
    for missed in np.flatnonzero(counts[:, TRAIN] == 0):
        part[rng.choice(np.flatnonzero(matrix[:, missed]))] = TRAIN
    return part


def _sizes(count: int) -> NDArray[np.int64]:
    """(3,): the nodes divided 7:1:2, rounded, at least one each."""
    validation, test = (max(1, round(SHARES[part] * count)) for part in (VALIDATION, TEST))
    return np.array([max(1, count - validation - test), validation, test])


def _apportioned(count: int, shares: NDArray[np.int64]) -> NDArray[np.int64]:
    """(3,): ``count`` in proportion to what each part still lacks; the earlier part has the remainder."""
    shares = np.maximum(shares, 0)
    exact = count * shares / shares.sum()
    sizes: NDArray[np.int64] = np.floor(exact).astype(np.int64)
    order = np.argsort(sizes - exact, kind="stable")  # largest remainder first
    for part in order[: count - sizes.sum()]:
        sizes[part] += 1
    return sizes
