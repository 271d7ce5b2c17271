"""The sampler of embedding: a function of ids, the same in a network that is built later."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from heterformer.arrays import Ints, ranges
from heterformer.batches.randomness import stream_key
from heterformer.batches.sampling import Sample
from heterformer.batches.visible import VisibleNetwork
from heterformer.network.hashes import Hashes, mixed, string_hash, string_hashes
from heterformer.network.schema import NodeType
from heterformer.network.store import Network

EMBEDDING = 5  # the purpose of this random stream, beside those of training, evaluation, dropout, positives


class StableSampler:
    """Draws of each centre the neighbours whose edges have the smallest random numbers.

    An edge's number is a hash of the seed, the two ids and the edge type. Row numbers, batches and other
    edges have no part in it: an edge that is added to a network displaces at most one sampled neighbour at
    each of its ends.
    """

    def __init__(self, network: Network, seed: int, edges_at_once: int = 1 << 20) -> None:
        """Random numbers of ``edges_at_once`` are in memory, so that a hub's need no room of their own."""
        self.network = network
        self.edges_at_once = edges_at_once
        self._key = stream_key(EMBEDDING, seed)
        self._ids: dict[NodeType, Hashes] = {}
        names = [string_hash(r.name) for r in network.schema.edge_types]
        self._edge_types = np.array(names, dtype=np.uint64)

    def ids(self, node_type: NodeType) -> Hashes:
        """A hash of each node's id."""
        if node_type not in self._ids:
            self._ids[node_type] = string_hashes(self.network.column(node_type, "id"))
        return self._ids[node_type]

    def sample(
        self,
        visible: VisibleNetwork,
        center_type: NodeType,
        neighbor_type: NodeType,
        centers: Ints,
        fan_out: int,
    ) -> Sample:
        """Up to ``fan_out`` visible neighbours of each centre. The cost is one hash per edge."""
        view = visible.adjacency(center_type, neighbor_type)
        adjacency = view.adjacency
        start, count = view.rank(adjacency.indptr[centers]), view.counts(centers)
        own = mixed(self.ids(center_type)[centers] ^ self._key)  # (n,)
        place, positions = np.empty(0, np.int64), np.empty(0, np.int64)
        numbers = np.empty(0, np.uint64)
        for low, high in _edge_blocks(count, self.edges_at_once):
            # The smallest so far beside the next edges: what is the smallest of all is never lost.
            more = np.repeat(np.arange(len(centers)), high - low)
            edges = view.position(ranges(start + low, start + high))
            others = self.ids(neighbor_type)[adjacency.neighbor[edges]]
            kinds = self._edge_types[adjacency.edge_type[edges]]
            place, positions = np.concatenate([place, more]), np.concatenate([positions, edges])
            numbers = np.concatenate([numbers, mixed(mixed(own[more] + others) ^ kinds)])
            kept = _smallest(place, numbers, fan_out)
            place, positions, numbers = place[kept], positions[kept], numbers[kept]
        order = np.lexsort((positions, place))
        place, positions = place[order], positions[order]
        return Sample(place, adjacency.neighbor[positions], adjacency.edge_type[positions])


def _edge_blocks(count: Ints, edges: int) -> Iterator[tuple[Ints, Ints]]:
    """Slices ``low`` to ``high`` of every centre's edges, that make up ``edges`` edges at a time."""
    end = np.cumsum(count)
    start = end - count
    for block in range(0, int(count.sum()), edges):
        low = np.clip(block - start, 0, count)
        yield low, np.clip(block + edges - start, low, count)


def _smallest(place: Ints, numbers: Hashes, most: int) -> NDArray[np.int64]:
    """The positions of each place's ``most`` smallest numbers."""
    count = np.bincount(place)
    if int(count.max(initial=0)) <= most:
        return np.arange(len(place))
    order = np.lexsort((numbers, place))
    rank = np.arange(len(place)) - np.repeat(np.cumsum(count) - count, count)
    kept: NDArray[np.int64] = order[rank < most]
    return kept
