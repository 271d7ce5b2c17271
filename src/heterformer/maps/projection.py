"""From vectors to a plane, by t-SNE as in the paper's figure, and what a user can choose about it."""

from __future__ import annotations

import io
import math
import re
import time
from collections.abc import Callable
from contextlib import nullcontext, redirect_stdout
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heterformer.arrays import Float32s
from heterformer.errors import InputError
from heterformer.maps.options import MapOptions

Clock = Callable[[], float]
FLAT = 3  # points that lie in a plane without projection
START = 1e-4  # deviation of the first coordinate at the start, as t-SNE's authors recommend
APART = 1e-6  # of the start's noise, which draws equal vectors apart
CLOSEST = 5  # nodes that decide where one of another type stands
NODES_AT_ONCE = 1024  # that are placed or written: what is in memory does not grow with the network
ITERATIONS = 1000  # of t-SNE; it ends earlier if it no longer improves
NEIGHBORS = 3  # times the perplexity: the neighbours of a point that t-SNE looks at


class _Iterations(io.TextIOBase):
    """What scikit-learn says while it iterates, as progress: it takes no callback."""

    said = re.compile(r"Iteration (\d+)")

    def __init__(self, advance: Callable[[int], object]) -> None:
        self.advance, self.done = advance, 0

    def write(self, text: str) -> int:
        for number in self.said.findall(text):
            self.reach(int(number))
        return len(text)

    def reach(self, done: int) -> None:
        if done > self.done:
            self.advance(done - self.done)
            self.done = done


def project(
    vectors: NDArray[Any],
    options: MapOptions | None = None,
    advance: Callable[[int], object] | None = None,
) -> Float32s:
    """(n, d) to (n, 2): nodes whose vectors point the same way lie together.

    Of vectors only directions count: a popular node's is longer, and lengths would pull it from its topic.
    The same vectors and seed give the same points, on any number of cores. ``advance`` counts iterations,
    ``ITERATIONS`` in all; meanwhile nothing else of the process should print on standard output.
    """
    options = options or MapOptions()
    row = first_not_finite(vectors)
    if row is not None:
        raise InputError(f"vector {row} has a value that is NaN or infinite.")

    from threadpoolctl import threadpool_limits

    # Several threads add up in another order, and t-SNE makes a rounding error a different picture.
    with threadpool_limits(limits=1):
        directions = directions_of(vectors)  # (n, d)
        plane = _principal(directions)  # (n, 2)
        if len(plane) > FLAT:
            iterations = None if advance is None else _Iterations(advance)
            with nullcontext() if iterations is None else redirect_stdout(iterations):
                plane = _tsne(directions, plane, options, verbose=2 * (iterations is not None))
            if iterations is not None:
                iterations.reach(ITERATIONS)
        elif advance is not None:
            advance(ITERATIONS)
        return plane


def _tsne(directions: Float32s, plane: Float32s, options: MapOptions, verbose: int = 0) -> Float32s:
    """(n, 2), beginning with the principal components."""
    from sklearn.manifold import TSNE

    noise = np.random.default_rng(options.seed).normal(0, APART, plane.shape)
    start = START * plane / (plane[:, 0].std() or 1.0) + noise
    perplexity = min(options.perplexity, max(1.0, (len(plane) - 1) / NEIGHBORS))
    first = start.astype(np.float32)
    tsne = TSNE(perplexity=perplexity, init=first, random_state=0, max_iter=ITERATIONS, verbose=verbose)
    layout: Float32s = tsne.fit_transform(directions)
    return layout


def expected_seconds(
    count: int,
    width: int,
    options: MapOptions,
    sample: int = 1000,
    clock: Clock = time.perf_counter,
) -> float:
    """How long ``count`` vectors will take, by how long a sample of random ones takes on this machine."""
    vectors = np.random.default_rng(0).normal(size=(sample, width)).astype(np.float32)
    started = clock()
    project(vectors, options)
    return (clock() - started) * count * math.log(count) / (sample * math.log(sample))


def place_among(
    vectors: NDArray[Any], others: NDArray[Any], places: Float32s, options: MapOptions | None = None
) -> Float32s:
    """(m, 2): each at the most central of the ``CLOSEST`` others by direction, which are (n, d) at (n, 2).

    For nodes of another type: inner products between types rank well but are smaller than those within, so
    that t-SNE of all together would only tell the types apart.
    """
    options = options or MapOptions()
    directions, known = directions_of(vectors), directions_of(others)
    count = min(CLOSEST, len(known))
    spots_of_nodes = np.empty((len(directions), 2), dtype=np.float32)
    for start in range(0, len(directions), NODES_AT_ONCE):
        part = slice(start, start + NODES_AT_ONCE)
        similar = directions[part] @ known.T  # (b, n)
        closest = np.argsort(-similar, axis=1, kind="stable")[:, :count]  # (b, k)
        spots = places[closest]  # (b, k, 2)
        apart = np.linalg.norm(spots[:, :, None] - spots[:, None], axis=-1).sum(2)  # (b, k)
        spots_of_nodes[part] = spots[np.arange(len(spots)), apart.argmin(1)]
    # Beside the other node and not upon it.
    noise = np.random.default_rng(options.seed).normal(size=spots_of_nodes.shape)
    return (spots_of_nodes + spacing_of(places) * noise).astype(np.float32)


def spacing_of(places: Float32s) -> float:
    """How far a point is from the next one, typically."""
    if len(places) < 2:
        return 1.0
    from sklearn.neighbors import KDTree

    distances, _ = KDTree(places).query(places, k=2)  # (n, 2), the first to itself
    return float(np.median(distances[:, 1])) or 1.0


def first_not_finite(vectors: NDArray[Any]) -> int | None:
    """The first row with a number that is NaN or infinite."""
    bad = ~np.isfinite(vectors).all(axis=1)  # (n,)
    return int(bad.argmax()) if bad.any() else None


def directions_of(vectors: NDArray[Any]) -> Float32s:
    """(n, d): vectors of length one; a zero vector stays."""
    values = vectors.astype(np.float64)
    lengths = np.linalg.norm(values, axis=1, keepdims=True)  # (n, 1)
    return (values / np.where(lengths > 0, lengths, 1)).astype(np.float32)


def _principal(values: Float32s) -> Float32s:
    """(n, 2): the first two principal components, each with its largest weight positive."""
    centered = values - values.mean(0)
    _, axes = np.linalg.eigh(centered.T @ centered)  # (d, d), the last column is the first component
    axes = axes[:, ::-1][:, :2]  # (d, 2), or (1, 1)
    axes = axes * np.sign(np.take_along_axis(axes, np.abs(axes).argmax(0)[None], 0))
    plane = np.zeros((len(values), 2), dtype=np.float32)
    plane[:, : axes.shape[1]] = centered @ axes
    return plane
