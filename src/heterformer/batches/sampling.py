"""Neighbour sampling: the protocol, and the seeded sampler of training and evaluation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from heterformer.arrays import Ints
from heterformer.batches.priority import EdgeFilter, smallest_priorities
from heterformer.batches.randomness import Keys, stream_keys, uniform
from heterformer.batches.visible import Times, VisibleAdjacency, VisibleNetwork
from heterformer.network.hashes import GOLDEN, Hashes, mixed
from heterformer.network.schema import NodeType


class Sample(NamedTuple):
    """Sampled edges, ordered by centre."""

    center: Ints  # the position of the centre among those asked for
    neighbor: NDArray[np.int32]
    edge_type: NDArray[np.int16]


class Sampler(Protocol):
    """Draws neighbours: per neighbour type, without replacement, for many centres at once.

    A node's sample depends on the node and the sampler alone, not on the other centres: a node has the
    same neighbours in whatever batch it is met.
    """

    def sample(
        self,
        visible: VisibleNetwork,
        center_type: NodeType,
        neighbor_type: NodeType,
        centers: Ints,
        fan_out: int,
        until: Times | None = None,
    ) -> Sample:
        """Up to ``fan_out`` visible neighbours of one type for each centre (a row of ``center_type``).

        Where edges have weights, in proportion to them. ``until`` gives a time per centre: no edge that is
        later is drawn.
        """
        ...


@dataclass(frozen=True)
class SeededSampler:
    """Draws uniformly or by weight, by random numbers that are a function of a key and the node."""

    key: Keys  # one for all centres, or one for each

    def sample(
        self,
        visible: VisibleNetwork,
        center_type: NodeType,
        neighbor_type: NodeType,
        centers: Ints,
        fan_out: int,
        until: Times | None = None,
        without: Ints | None = None,
    ) -> Sample:
        """The sample; ``without`` is as in ``sample_neighbors``."""
        types = visible.network.schema.node_types
        stream = types.index(center_type) * len(types) + types.index(neighbor_type)
        keys = stream_keys(self.key, stream)
        view = visible.adjacency(center_type, neighbor_type)
        times = None if until is None else visible.entry_times(center_type, neighbor_type)
        if view.adjacency.weight is None and times is None:
            return sample_neighbors(view, centers, fan_out, keys, without)
        return sample_by_priority(view, centers, fan_out, keys, EdgeFilter(without, until, times))


def sample_by_priority(
    view: VisibleAdjacency, centers: Ints, fan_out: int, key: Keys, allowed: EdgeFilter
) -> Sample:
    """Up to ``fan_out`` allowed neighbours of each centre, without replacement and in proportion to weights.

    The cost is a random number per edge of each centre.
    """
    adjacency = view.adjacency
    own = mixed(centers.astype(np.uint64) + key)  # (C,)
    start = adjacency.indptr[centers]

    def numbers(place: Ints, edges: Ints) -> Hashes:
        return mixed(own[place] + (edges - start[place]).astype(np.uint64) * GOLDEN)

    center, position = smallest_priorities(view, centers, fan_out, numbers, allowed)
    return Sample(center, adjacency.neighbor[position], adjacency.edge_type[position])


def sample_neighbors(
    visible: VisibleAdjacency, centers: Ints, fan_out: int, key: Keys, without: Ints | None = None
) -> Sample:
    """Up to ``fan_out`` visible neighbours of each centre, uniformly and without replacement.

    ``without`` gives one node per centre that must not be drawn, by whatever edge it is joined
    (-1 for none): the other end of a pair. The cost does not depend on degrees.
    """
    adjacency = visible.adjacency
    start = visible.rank(adjacency.indptr[centers])
    count = visible.counts(centers)
    if without is not None:
        lower, upper = adjacency.between(centers, without)
        lower, upper = visible.rank(lower) - start, visible.rank(upper) - start
        count = count - (upper - lower)
    chosen, drawn = _floyd(count, fan_out, uniform(key, centers, fan_out))  # (C, k), (C, k)
    if without is not None:  # step over the other end's entries, which stand together
        chosen += (chosen >= lower[:, None]) * (upper - lower)[:, None]
    center, column = np.nonzero(drawn)
    position = visible.position(start[center] + chosen[center, column])
    return Sample(center, adjacency.neighbor[position], adjacency.edge_type[position])


def _floyd(count: Ints, fan_out: int, random: NDArray[np.float64]) -> tuple[Ints, NDArray[np.bool_]]:
    """For each row a uniform subset of ``range(count)``: ``fan_out`` of them, or all if there are no more.

    Floyd's algorithm (Bentley and Floyd, 1987), one round for all rows: draw from 0..j, and if that
    number is in the subset already, take j itself.
    """
    chosen: NDArray[Any] = np.full((len(count), fan_out), -1, dtype=np.int64)
    drawn = np.arange(fan_out) < count[:, None]
    take_all = count <= fan_out
    for j in range(fan_out):
        last = count - fan_out + j
        number = np.floor(random[:, j] * (last + 1)).astype(np.int64)
        number = np.where((chosen[:, :j] == number[:, None]).any(axis=1), last, number)
        chosen[:, j] = np.where(take_all, j, number)
    return chosen, drawn
