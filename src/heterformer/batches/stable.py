"""The neighbour sample of an embedding: a function of ids, the same in a network that is built later."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from heterformer.batches.randomness import stream_key
from heterformer.batches.sampling import Ints, Sample
from heterformer.batches.visible import VisibleNetwork
from heterformer.network.adjacency import ranges
from heterformer.network.hashes import Hashes, mixed, string_hash, string_hashes
from heterformer.network.schema import NodeType

EMBEDDING = 5  # the purpose of this random stream, beside those of training, evaluation, dropout, positives


class StableSample:
    """Of each centre the neighbours whose edges have the smallest random numbers.

    An edge's number is a hash of the seed, the two ids and the edge type. Row numbers, batches and other
    edges have no part in it: an edge that is added to a network displaces at most one sampled neighbour at
    each of its ends.
    """

    def __init__(self, visible: VisibleNetwork, seed: int) -> None:
        self.visible = visible
        self._key = stream_key(EMBEDDING, seed)
        self._ids: dict[NodeType, Hashes] = {}
        names = [string_hash(r.name) for r in visible.network.schema.edge_types]
        self._edge_types = np.array(names, dtype=np.uint64)

    def ids(self, node_type: NodeType) -> Hashes:
        """A hash of each node's id."""
        if node_type not in self._ids:
            self._ids[node_type] = string_hashes(self.visible.network.column(node_type, "id"))
        return self._ids[node_type]

    def draw(self, center: NodeType, neighbor: NodeType, centers: Ints, fan_out: int) -> Sample:
        """Up to ``fan_out`` visible neighbours of each centre. The cost is one hash per edge."""
        visible = self.visible.adjacency(center, neighbor)
        adjacency = visible.adjacency
        first = visible.rank(adjacency.indptr[centers])
        count = visible.counts(centers)
        positions = visible.position(ranges(first, first + count))
        place = np.repeat(np.arange(len(centers)), count)
        nodes, edge_types = adjacency.neighbor[positions], adjacency.edge_type[positions]
        numbers = mixed(self.ids(center)[centers] ^ self._key)[place]
        numbers = mixed(mixed(numbers + self.ids(neighbor)[nodes]) ^ self._edge_types[edge_types])
        kept = _smallest(place, numbers, count, fan_out)
        return Sample(place[kept], nodes[kept], edge_types[kept])


def _smallest(place: Ints, numbers: Hashes, count: Ints, most: int) -> NDArray[np.int64]:
    """The positions of each place's ``most`` smallest numbers, in their old order."""
    if int(count.max(initial=0)) <= most:
        return np.arange(len(place))
    order = np.lexsort((numbers, place))
    rank = np.arange(len(place)) - np.repeat(np.cumsum(count) - count, count)
    return np.sort(order[rank < most])
