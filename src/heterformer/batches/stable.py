"""The sampler of embedding: a function of ids, the same in a network that is built later."""

from __future__ import annotations

import numpy as np

from heterformer.arrays import Ints
from heterformer.batches.priority import EDGES_AT_ONCE, EdgeFilter, smallest_priorities
from heterformer.batches.randomness import stream_key
from heterformer.batches.sampling import Sample
from heterformer.batches.visible import Times, VisibleNetwork
from heterformer.network.hashes import Hashes, mixed, string_hash, string_hashes
from heterformer.network.schema import NodeType
from heterformer.network.store import Network

EMBEDDING = 5  # the purpose of this random stream, beside those of training, evaluation, dropout, positives


class StableSampler:
    """Draws of each centre the neighbours whose edges have the smallest random numbers.

    An edge's number is a hash of the seed, the two ids and the edge type, divided by the edge's weight if it
    has one. Row numbers, batches and other edges have no part in it: an edge that is added to a network
    displaces at most one sampled neighbour at each of its ends.
    """

    def __init__(self, network: Network, seed: int, edges_at_once: int = EDGES_AT_ONCE) -> None:
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
        until: Times | None = None,
    ) -> Sample:
        """Up to ``fan_out`` visible neighbours of each centre. The cost is one hash per edge."""
        view = visible.adjacency(center_type, neighbor_type)
        adjacency = view.adjacency
        own = mixed(self.ids(center_type)[centers] ^ self._key)  # (n,)

        def numbers(place: Ints, edges: Ints) -> Hashes:
            others = self.ids(neighbor_type)[adjacency.neighbor[edges]]
            return mixed(mixed(own[place] + others) ^ self._edge_types[adjacency.edge_type[edges]])

        times = None if until is None else visible.entry_times(center_type, neighbor_type)
        allowed = EdgeFilter(None, until, times)
        place, positions = smallest_priorities(view, centers, fan_out, numbers, allowed, self.edges_at_once)
        return Sample(place, adjacency.neighbor[positions], adjacency.edge_type[positions])
