"""A layout of all nodes, of millions too: t-SNE of some (the landmarks), the rest placed beside them.

Time and memory of the t-SNE depend on the number of landmarks alone; placing a node takes one product with
each landmark's reduced vector and looks at no other node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heterformer.arrays import Float32s
from heterformer.errors import InputError
from heterformer.maps.options import MapOptions
from heterformer.maps.projection import (
    CLOSEST,
    ITERATIONS,
    NODES_AT_ONCE,
    directions_of,
    first_not_finite,
    project,
    spacing_of,
)
from heterformer.network.schema import NodeType
from heterformer.progress import progress_bar

LANDMARKS = 10_000
REDUCED = 64  # principal components in which landmarks are compared with nodes
NEAR = 32  # landmarks around the closest one among which a node's closest are looked for
TOGETHER = 4.0  # times the landmarks' spacing: farther ones of the closest do not count
JITTER = 0.5  # of the spacing: a node stands beside its landmarks and not upon them

Matrices = Mapping[NodeType, NDArray[Any]]
Advance = Callable[[int], object]
PlacesByType = dict[NodeType, Float32s]


def lay_out(
    matrices: Matrices,
    text_rich: Sequence[NodeType],
    options: MapOptions,
    count: int = LANDMARKS,
    followed: bool = False,
) -> PlacesByType:
    """(n, 2) by type, rows in network order; ``count`` nodes are landmarks.

    Landmarks are nodes with text, or any nodes if none has: each type has its share of them. Nodes of
    textless types are placed among the texts, as on the picture. If ``followed``, progress is shown.
    """
    from threadpoolctl import threadpool_limits

    filled = {t: matrix for t, matrix in matrices.items() if len(matrix)}
    laid_out = [t for t in filled if t in text_rich] or list(filled)
    if not laid_out:
        return {t: np.zeros((0, 2), np.float32) for t in matrices}
    rows = landmark_rows({t: len(filled[t]) for t in laid_out}, count, options.seed)
    anchors = np.concatenate([_checked(t, filled[t][rows[t]], rows[t]) for t in laid_out])  # (L, d)
    with threadpool_limits(limits=1):  # sums of several threads round differently
        with followed_bar("laying out all nodes", ITERATIONS, "iterations", followed) as advance:
            landmarks = Landmarks.from_vectors(anchors, project(anchors, options, advance))
        nodes = sum(map(len, matrices.values()))
        with followed_bar("placing all nodes", nodes, "nodes", followed) as advance:
            seed = options.seed
            places = {t: _placed(t, matrix, landmarks, seed, advance) for t, matrix in matrices.items()}
    ends = np.cumsum([len(rows[t]) for t in laid_out])
    for node_type, own in zip(laid_out, np.split(landmarks.places, ends[:-1]), strict=True):
        places[node_type][rows[node_type]] = own
    return places


def landmark_rows(counts: Mapping[NodeType, int], count: int, seed: int) -> dict[NodeType, NDArray[np.int64]]:
    """The rows of ``count`` landmarks, ascending: all nodes, or of each type in proportion."""
    total, rng = sum(counts.values()), np.random.default_rng(seed)
    share = min(1.0, count / total)
    sizes = {t: min(nodes, max(1, round(share * nodes))) for t, nodes in counts.items()}
    return {t: np.sort(rng.choice(counts[t], size, replace=False)) for t, size in sizes.items()}


@dataclass(frozen=True)
class Landmarks:
    """Nodes whose places are known, and what it takes to find those close to another node."""

    places: Float32s  # (L, 2)
    axes: Float32s  # (d, r): principal components of the landmarks' directions
    reduced: Float32s  # (L, r): the landmarks along them
    near: NDArray[np.int64]  # (L, k): for each landmark those closest to it, itself the first
    spacing: float  # between neighbouring landmarks in the plane

    @classmethod
    def from_vectors(cls, vectors: NDArray[Any], places: Float32s) -> Landmarks:
        directions = directions_of(vectors)  # (L, d)
        centered = directions - directions.mean(0)
        _, axes = np.linalg.eigh(centered.T @ centered)  # (d, d), ascending
        axes = np.ascontiguousarray(axes[:, ::-1][:, :REDUCED], dtype=np.float32)
        reduced = centered @ axes
        count = min(NEAR, len(reduced))
        near = np.concatenate([_largest(block @ reduced.T, count) for block in _blocks(reduced)])
        return cls(places, axes, reduced, near, spacing_of(places))

    def place(self, vectors: NDArray[Any]) -> Float32s:
        """(b, 2): each at the middle of those of its closest landmarks that lie together."""
        # A landmark's mean is not subtracted here: it would change all products of a node alike.
        nodes = directions_of(vectors) @ self.axes  # (b, r)
        closest = (nodes @ self.reduced.T).argmax(1)  # (b,)
        candidates = self.near[closest]  # (b, k)
        products = np.einsum("bkr,br->bk", self.reduced[candidates], nodes)
        best = _largest(products, min(CLOSEST, products.shape[1]))  # (b, c)
        spots = self.places[np.take_along_axis(candidates, best, 1)]  # (b, c, 2)
        apart = np.linalg.norm(spots[:, :, None] - spots[:, None], axis=-1)  # (b, c, c)
        central = apart.sum(2).argmin(1)  # (b,)
        counts = apart[np.arange(len(spots)), central] <= TOGETHER * self.spacing  # (b, c)
        middle: Float32s = (spots * counts[..., None]).sum(1) / counts.sum(1, keepdims=True)
        return middle


@contextmanager
def followed_bar(description: str, total: int, unit: str, followed: bool) -> Iterator[Advance | None]:
    """What moves a progress bar, or nothing unless ``followed``."""
    if not followed:
        yield None
        return
    with progress_bar(description, total, unit) as bar:
        yield bar.advance


def _placed(
    node_type: NodeType,
    matrix: NDArray[Any],
    landmarks: Landmarks,
    seed: int,
    advance: Advance | None = None,
) -> Float32s:
    places = np.empty((len(matrix), 2), dtype=np.float32)
    noise = np.random.default_rng(seed)
    for start in range(0, len(matrix), NODES_AT_ONCE):
        rows = np.arange(start, min(start + NODES_AT_ONCE, len(matrix)))
        block = _checked(node_type, matrix[rows[0] : rows[-1] + 1].astype(np.float32), rows)
        beside = JITTER * landmarks.spacing * noise.standard_normal((len(rows), 2))
        places[rows] = landmarks.place(block) + beside
        if advance is not None:
            advance(len(rows))
    return places


def _checked(node_type: NodeType, vectors: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
    bad = first_not_finite(vectors)
    if bad is not None:
        problem = f"the vector of {node_type} node {int(rows[bad]):,} has a value that is NaN or infinite"
        raise InputError(f"{problem}; train or embed again.")
    return vectors


def _largest(values: NDArray[Any], count: int) -> NDArray[np.int64]:
    """(b, count): the places of the largest numbers of each row, the largest first."""
    some = np.argpartition(-values, count - 1, axis=1)[:, :count]
    order = np.argsort(-np.take_along_axis(values, some, 1), axis=1, kind="stable")
    return np.take_along_axis(some, order, 1)


def _blocks(values: Float32s) -> Iterator[Float32s]:
    return (values[start : start + NODES_AT_ONCE] for start in range(0, len(values), NODES_AT_ONCE))
