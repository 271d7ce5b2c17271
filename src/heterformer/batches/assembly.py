"""From sampled edges to a ``Batch``: distinct texts once, positions instead of node numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from heterformer.arrays import Ints, ranges
from heterformer.batches.batch import Batch, Neighbors, TextlessCenters, Texts
from heterformer.network.hashes import sequence_hashes
from heterformer.network.schema import EdgeType, NodeType, Schema
from heterformer.network.tokens import PackedTokens


class SampledEdges(NamedTuple):
    """The sampled edges of one batch between its centres and one neighbour type."""

    neighbor_type: NodeType
    edge_types: tuple[tuple[int, EdgeType], ...]  # those that can occur, with their numbers
    center: Ints  # positions among the batch's centres
    neighbor: NDArray[np.int32]
    edge_type: NDArray[np.int16]

    def select(self, positions: Ints, centers: int) -> SampledEdges:
        """The edges of some of the ``centers``, which are then counted in the order of ``positions``."""
        bounds = np.searchsorted(self.center, np.arange(centers + 1))
        start, stop = bounds[positions], bounds[positions + 1]
        chosen = ranges(start, stop)
        center = np.repeat(np.arange(len(positions)), stop - start)
        return self._replace(center=center, neighbor=self.neighbor[chosen], edge_type=self.edge_type[chosen])

    def without(self, alone: NDArray[np.bool_]) -> SampledEdges:
        """The edges of the centres that are not marked in ``alone``."""
        kept = ~alone[self.center]
        center, neighbor, edge_type = self.center[kept], self.neighbor[kept], self.edge_type[kept]
        return self._replace(center=center, neighbor=neighbor, edge_type=edge_type)


class SecondHop(Protocol):
    """Gives the sampled neighbours of some nodes of a text-rich type, which are themselves neighbours."""

    def __call__(self, node_type: NodeType, rows: Ints) -> Iterable[SampledEdges]:
        """Their edges to each neighbour type; ``center`` is a position in ``rows``."""
        ...


def assemble(
    schema: Schema,
    tokens: PackedTokens,
    centers: Ints,
    sampled: Sequence[SampledEdges],
    textless_end: TextlessEnd | None = None,
    second_hop: SecondHop | None = None,
    near: Ints | None = None,
) -> Batch:
    """``centers`` are text numbers; the neighbours of all kinds come as sampled edges.

    ``near`` are the numbers of texts that count as neighbours although no centre has them.
    """
    nodes = _NodeNumbering(schema, tokens)
    if near is not None:
        nodes.texts.add(near)
    parts = [part for edges in sampled for part in nodes.add(edges)]
    first_hop = nodes.texts.distinct()
    end_parts = [] if textless_end is None else textless_end.add_to(nodes.texts, tokens)
    further = [] if second_hop is None else list(_second_hop_parts(tokens, nodes, second_hop))
    neighbor_texts = nodes.texts.distinct()
    distinct = {t: numbering.distinct() for t, numbering in nodes.textless.items()}
    all_texts, center_index = _with_centers(neighbor_texts, centers)
    packed, offsets = tokens.gather(all_texts)
    hashes = np.zeros(len(all_texts), dtype=np.int64)
    if len(centers):
        known = np.searchsorted(neighbor_texts, first_hop)
        hashes[known] = sequence_hashes(*tokens.gather(first_hop)).view(np.int64)
    return Batch(
        texts=Texts(torch.from_numpy(packed), torch.from_numpy(offsets), torch.from_numpy(hashes)),
        neighbor_texts=len(neighbor_texts),
        centers=torch.from_numpy(center_index),
        neighbors={part.edge_type: part.neighbors(part.center) for part in parts if len(part.center)},
        second_hop={
            part.edge_type: part.neighbors(np.searchsorted(neighbor_texts, part.center))
            for part in further
            if len(part.center)
        },
        textless={t: torch.from_numpy(rows) for t, rows in distinct.items() if len(rows)},
        text_rows=torch.from_numpy(all_texts),
        textless_centers=None if textless_end is None else textless_end.centers(end_parts, nodes.texts),
    )


def _second_hop_parts(
    tokens: PackedTokens, nodes: _NodeNumbering, second_hop: SecondHop
) -> Iterator[_EdgePart]:
    """The neighbours' own neighbours, put among the batch's nodes; ``center`` is a text number."""
    near = nodes.texts.distinct()  # before those of the second hop are among them
    for node_type, rows in tokens.by_type(near):
        for edges in second_hop(node_type, rows):
            for part in nodes.add(edges):
                yield part._replace(center=rows[part.center] + tokens.text_offset[node_type])


class TextlessEnd(NamedTuple):
    """Textless centres of a batch, and the sampled edges to the text-rich neighbours they are made of."""

    node_type: NodeType
    rows: Ints
    sampled: Sequence[SampledEdges] = ()

    def add_to(self, texts: _Numbering, tokens: PackedTokens) -> list[tuple[EdgeType, Ints, slice]]:
        """Put the neighbours' texts among the batch's; each edge type with its centres and their place."""
        parts = []
        for edges in self.sampled:
            numbers = edges.neighbor.astype(np.int64) + tokens.text_offset[edges.neighbor_type]
            for number, edge_type in edges.edge_types:
                chosen = np.flatnonzero(edges.edge_type == number)
                parts.append((edge_type, edges.center[chosen], texts.add(numbers[chosen])))
        return parts

    def centers(self, parts: list[tuple[EdgeType, Ints, slice]], texts: _Numbering) -> TextlessCenters:
        neighbors = {
            edge_type: Neighbors(torch.from_numpy(center), torch.from_numpy(texts.positions(part)))
            for edge_type, center, part in parts
            if len(center)
        }
        return TextlessCenters(self.node_type, torch.from_numpy(self.rows), neighbors)


class _EdgePart(NamedTuple):
    """The edges of one edge type, whose neighbours wait for their positions."""

    edge_type: EdgeType
    center: Ints
    where: _Numbering
    place: slice

    def neighbors(self, center: Ints) -> Neighbors:
        return Neighbors(torch.from_numpy(center), torch.from_numpy(self.where.positions(self.place)))


class _NodeNumbering:
    """The neighbours of a batch: texts are counted together, textless nodes type by type."""

    def __init__(self, schema: Schema, tokens: PackedTokens) -> None:
        self.tokens, self.texts = tokens, _Numbering()
        self.textless = {t: _Numbering() for t in schema.textless}

    def add(self, edges: SampledEdges) -> Iterator[_EdgePart]:
        """The sampled edges, edge type by edge type."""
        numbers = edges.neighbor.astype(np.int64)
        where = self.textless.get(edges.neighbor_type, self.texts)
        if where is self.texts:
            numbers += self.tokens.text_offset[edges.neighbor_type]
        for number, edge_type in edges.edge_types:
            if len(edges.edge_types) == 1:
                yield _EdgePart(edge_type, edges.center, where, where.add(numbers))
            else:
                chosen = np.flatnonzero(edges.edge_type == number)
                yield _EdgePart(edge_type, edges.center[chosen], where, where.add(numbers[chosen]))


class _Numbering:
    """Collects node numbers and gives each distinct one a position, ascending."""

    def __init__(self) -> None:
        self._parts: list[Ints] = [np.empty(0, dtype=np.int64)]
        self._count = 0
        self._inverse = self._parts[0]

    def add(self, numbers: Ints) -> slice:
        """Remember some numbers; the result finds their positions again."""
        self._parts.append(numbers)
        self._count += len(numbers)
        return slice(self._count - len(numbers), self._count)

    def distinct(self) -> Ints:
        numbers, self._inverse = np.unique(np.concatenate(self._parts), return_inverse=True)
        return numbers

    def positions(self, part: slice) -> Ints:
        return self._inverse[part]


def _with_centers(neighbors: Ints, centers: Ints) -> tuple[Ints, Ints]:
    """Neighbour texts followed by those that are only centres, and each centre's position among them."""
    distinct, inverse = np.unique(centers, return_inverse=True)
    insertion = np.searchsorted(neighbors, distinct)
    known = np.zeros(len(distinct), dtype=bool)
    inside = insertion < len(neighbors)
    known[inside] = neighbors[insertion[inside]] == distinct[inside]
    position = np.where(known, insertion, len(neighbors) + np.cumsum(~known) - 1)
    return np.concatenate([neighbors, distinct[~known]]), position[inverse]
