"""Sampling by priorities: each edge has a random number, and a centre's smallest ones are drawn.

Unlike Floyd's algorithm it looks at every edge of a centre, and so it can weigh edges and leave some out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heterformer.arrays import Ints, ranges
from heterformer.batches.visible import VisibleAdjacency
from heterformer.network.hashes import Hashes

EDGES_AT_ONCE = 1 << 20
Numbers = Callable[[Ints, Ints], Hashes]  # of edges: positions of their centres, and of them in the adjacency


class EdgeFilter(NamedTuple):
    """Which of a centre's edges may be drawn, besides being visible."""

    without: Ints | None = None  # one node per centre that must not be drawn, by whatever edge; -1 for none
    until: NDArray[np.float64] | None = None  # per centre: no edge that is later; NaN for no limit
    times: NDArray[np.float64] | None = None  # of all entries of the adjacency, which ``until`` needs


ALL = EdgeFilter()


def smallest_priorities(
    view: VisibleAdjacency,
    centers: Ints,
    fan_out: int,
    numbers: Numbers,
    allowed: EdgeFilter = ALL,
    edges_at_once: int = EDGES_AT_ONCE,
) -> tuple[Ints, Ints]:
    """Up to ``fan_out`` edges of each centre: positions of centres, ascending, and of edges in the adjacency.

    Where edges have weights, an edge's priority is ``-log(u) / weight``: drawing the smallest is drawing
    without replacement in proportion to weights (Efraimidis and Spirakis, 2006). Priorities of
    ``edges_at_once`` are in memory, so that a hub's need no room of their own.
    """
    start, count = view.rank(view.adjacency.indptr[centers]), view.counts(centers)
    place, positions = np.empty(0, np.int64), np.empty(0, np.int64)
    priorities: NDArray[Any] = np.empty(0, np.uint64 if view.adjacency.weight is None else np.float64)
    for low, high in _edge_blocks(count, edges_at_once):
        # The smallest so far beside the next edges: what is the smallest of all is never lost.
        more = np.repeat(np.arange(len(centers)), high - low)
        edges = view.position(ranges(start + low, start + high))
        if (visible_edges := _allowed(view, more, edges, allowed)) is not None:
            more, edges = more[visible_edges], edges[visible_edges]
        place, positions = np.concatenate([place, more]), np.concatenate([positions, edges])
        priorities = np.concatenate([priorities, _weighed(numbers(more, edges), view, edges)])
        kept = _smallest(place, priorities, fan_out)
        place, positions, priorities = place[kept], positions[kept], priorities[kept]
    order = np.lexsort((positions, place))
    return place[order], positions[order]


def _allowed(
    view: VisibleAdjacency, place: Ints, edges: Ints, allowed: EdgeFilter
) -> NDArray[np.bool_] | None:
    """Which of some edges may be drawn; None if all."""
    parts: list[NDArray[np.bool_]] = []
    if view.adjacency.weight is not None:
        parts.append(view.adjacency.weight[edges] > 0)
    if allowed.without is not None:
        parts.append(view.adjacency.neighbor[edges] != allowed.without[place])
    if allowed.until is not None and allowed.times is not None:
        parts.append(~(allowed.times[edges] > allowed.until[place]))
    return np.logical_and.reduce(parts) if parts else None


def _weighed(numbers: Hashes, view: VisibleAdjacency, edges: Ints) -> NDArray[Any]:
    if view.adjacency.weight is None:
        return numbers
    uniform = ((numbers >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53  # in (0, 1)
    priorities: NDArray[np.float64] = -np.log(uniform) / view.adjacency.weight[edges]
    return priorities


def _edge_blocks(count: Ints, edges: int) -> Iterator[tuple[Ints, Ints]]:
    """Slices ``low`` to ``high`` of every centre's edges, that make up ``edges`` edges at a time."""
    end = np.cumsum(count)
    start = end - count
    for block in range(0, int(count.sum()), edges):
        low = np.clip(block - start, 0, count)
        yield low, np.clip(block + edges - start, low, count)


def _smallest(place: Ints, priorities: NDArray[Any], most: int) -> NDArray[np.int64]:
    """The positions of each place's ``most`` smallest priorities."""
    count = np.bincount(place)
    if int(count.max(initial=0)) <= most:
        return np.arange(len(place))
    order = np.lexsort((priorities, place))
    rank = np.arange(len(place)) - np.repeat(np.cumsum(count) - count, count)
    kept: NDArray[np.int64] = order[rank < most]
    return kept
