"""The neighbours of neighbours, drawn once for each node of a pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from heterformer.arrays import Ints, ranges
from heterformer.batches.assembly import SampledEdges, SecondHop
from heterformer.network.schema import NodeType, Schema


class DrawnSecondHop:
    """A ``SecondHop`` that draws a node's neighbours the first time it is asked for them and keeps them.

    An edge takes six bytes of memory.
    """

    def __init__(self, schema: Schema, draw: SecondHop) -> None:
        self._draw = draw
        self._place = {t: np.full(schema.counts[t], -1, dtype=np.int64) for t in schema.text_rich}
        self._count = dict.fromkeys(schema.text_rich, 0)
        self._drawn: dict[NodeType, list[_DrawnEdges]] = {t: [] for t in schema.text_rich}

    def __call__(self, node_type: NodeType, rows: Ints) -> Iterator[SampledEdges]:
        """The sampled edges of nodes of a text-rich type; ``center`` is a position in ``rows``."""
        place = self._place[node_type]
        new = np.unique(rows[place[rows] < 0])
        if len(new):
            place[new] = self._count[node_type] + np.arange(len(new))
            self._count[node_type] += len(new)
            for number, edges in enumerate(self._draw(node_type, new)):
                if number == len(self._drawn[node_type]):
                    self._drawn[node_type].append(_DrawnEdges(edges))
                self._drawn[node_type][number].add(edges, len(new))
        return (drawn.select(place[rows]) for drawn in self._drawn[node_type])


class _DrawnEdges:
    """The edges of nodes to one neighbour type, node by node in the order in which they were drawn."""

    def __init__(self, like: SampledEdges) -> None:
        self._like = like
        self._stops = _GrowingArray(np.int64)
        self._neighbor, self._edge_type = _GrowingArray(np.int32), _GrowingArray(np.int16)

    def add(self, edges: SampledEdges, nodes: int) -> None:
        counts = np.bincount(edges.center, minlength=nodes)
        self._stops.extend(len(self._neighbor) + np.cumsum(counts))
        self._neighbor.extend(edges.neighbor)  # edges are ordered by centre
        self._edge_type.extend(edges.edge_type)

    def select(self, places: Ints) -> SampledEdges:
        """The edges of the nodes at ``places``."""
        stops = self._stops.values
        start, stop = np.where(places > 0, stops[places - 1], 0), stops[places]
        index = ranges(start, stop)
        center = np.repeat(np.arange(len(places)), stop - start)
        return self._like._replace(
            center=center, neighbor=self._neighbor.values[index], edge_type=self._edge_type.values[index]
        )


class _GrowingArray:
    """An array to append to; room is doubled, so that each value is moved about once."""

    def __init__(self, dtype: DTypeLike) -> None:
        self._room, self._length = np.empty(1024, dtype=dtype), 0

    def __len__(self) -> int:
        return self._length

    @property
    def values(self) -> NDArray[Any]:
        return self._room[: self._length]

    def extend(self, values: NDArray[Any]) -> None:
        length = self._length + len(values)
        if length > len(self._room):
            room = np.empty(max(length, 2 * len(self._room)), dtype=self._room.dtype)
            room[: self._length] = self.values
            self._room = room
        self._room[self._length : length] = values
        self._length = length
