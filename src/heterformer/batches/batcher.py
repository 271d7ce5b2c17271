"""Batches of pairs and of nodes, from the visible network and its packed tokens."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heterformer.batches.batch import Batch, Neighbors, Texts
from heterformer.batches.randomness import stream_key
from heterformer.batches.sampling import Ints, sample_neighbors
from heterformer.batches.visible import VisibleNetwork
from heterformer.network.schema import EdgeType, NodeType
from heterformer.network.split import Pairs
from heterformer.network.tokens import PackedTokens


class Batcher:
    """Makes batches; it holds no state, so equal arguments give equal batches."""

    def __init__(
        self,
        visible: VisibleNetwork,
        tokens: PackedTokens,
        fan_out: Mapping[NodeType, int] | None = None,
    ) -> None:
        self.visible = visible
        self.tokens = tokens
        self.schema = visible.network.schema
        self.fan_out = dict(fan_out if fan_out is not None else self.schema.neighbors)

    def nodes(self, node_type: NodeType, rows: Ints, key: np.uint64) -> Batch:
        """The given nodes as centres."""
        return self._assembled([_Group(node_type, rows, 0, None)], key)

    def pairs(self, pairs: Pairs, key: np.uint64, *, false_negatives: bool = False) -> Batch:
        """Queries, then keys, as centres; neither end of a pair sees the other."""
        relation = self.schema.predicted
        query, node = np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])
        groups = [
            _Group(relation.source, query, 0, (relation.target, node)),
            _Group(relation.target, node, len(pairs), (relation.source, query)),
        ]
        if relation.source == relation.target:  # one group: half the calls
            both = (relation.source, np.concatenate([node, query]))
            groups = [_Group(relation.source, np.concatenate([query, node]), 0, both)]
        mask = torch.from_numpy(self.false_negatives(query, node)) if false_negatives else None
        return self._assembled(groups, key, mask)

    def false_negatives(self, queries: Ints, keys: Ints) -> NDArray[np.bool_]:
        """(P, P): key j is no negative of query i, though not its own: a visible edge joins them either way
        round, or key j is the same node as key i or as the query itself.

        Held-out edges are not consulted: that they exist must not reach training.
        """
        relation = self.schema.predicted
        homogeneous = relation.source == relation.target
        visible = self.visible.adjacency(relation.source, relation.target)
        count = len(queries)
        query, key = np.repeat(queries, count), np.tile(keys, count)
        mask: NDArray[np.bool_] = np.tile(keys, count) == np.repeat(keys, count)
        numbers = [self.schema.edge_types.index(relation.forward)]
        if homogeneous:
            numbers.append(self.schema.edge_types.index(relation.backward))
            mask |= query == key
        lower, upper = visible.adjacency.between(query, key)
        seen = visible.rank(upper) > visible.rank(lower)
        rows = np.flatnonzero(seen)
        for number in numbers:
            mask[rows] |= visible.adjacency.joined(query[rows], key[rows], number)
        square: NDArray[np.bool_] = mask.reshape(count, count)
        np.fill_diagonal(square, False)
        return square

    def _assembled(self, groups: list[_Group], key: np.uint64, mask: Tensor | None = None) -> Batch:
        texts = _Numbering()
        textless = {t: _Numbering() for t in self.schema.textless}
        edges: list[tuple[EdgeType, Ints, _Numbering, int]] = []
        for group in groups:
            for number, neighbor_type in enumerate(self.schema.node_types):
                if not self._sampled(group.node_type, neighbor_type):
                    continue
                sample = sample_neighbors(
                    self.visible.adjacency(group.node_type, neighbor_type),
                    group.rows,
                    self.fan_out[neighbor_type],
                    stream_key(int(key), number),
                    group.without(neighbor_type),
                )
                rows, where = sample.neighbor.astype(np.int64), textless.get(neighbor_type, texts)
                if where is texts:
                    rows += self.tokens.first[neighbor_type]
                for edge_number, edge_type in enumerate(self.schema.edge_types):
                    if (edge_type.center, edge_type.neighbor) == (group.node_type, neighbor_type):
                        chosen = sample.edge_type == edge_number
                        center = sample.center[chosen] + group.first
                        edges.append((edge_type, center, where, where.add(rows[chosen])))
        numbers, neighbor_texts = texts.distinct()
        centers = np.concatenate([g.rows + self.tokens.first[g.node_type] for g in groups])
        all_texts, center_index = _with_centers(numbers, centers)
        tokens, offsets = self.tokens.gather(all_texts)
        met = {t: n.distinct()[0] for t, n in textless.items()}
        return Batch(
            texts=Texts(torch.from_numpy(tokens), torch.from_numpy(offsets)),
            neighbor_texts=neighbor_texts,
            centers=torch.from_numpy(center_index),
            neighbors=_by_edge_type(edges),
            textless={t: torch.from_numpy(rows) for t, rows in met.items() if len(rows)},
            false_negatives=mask,
        )

    def _sampled(self, center: NodeType, neighbor: NodeType) -> bool:
        return self.fan_out.get(neighbor, 0) > 0 and bool(self.schema.edge_types_of(center, neighbor))


class _Group:
    """Centres of one type, the position of the first among all centres, and who each must not see."""

    def __init__(
        self, node_type: NodeType, rows: Ints, first: int, partner: tuple[NodeType, Ints] | None
    ) -> None:
        self.node_type, self.rows, self.first, self.partner = node_type, rows, first, partner

    def without(self, neighbor: NodeType) -> Ints | None:
        return self.partner[1] if self.partner is not None and self.partner[0] == neighbor else None


class _Numbering:
    """Collects node numbers and gives each distinct one a position, ascending."""

    def __init__(self) -> None:
        self.parts: list[Ints] = []
        self._inverse: Ints | None = None
        self._starts: list[int] = [0]

    def add(self, numbers: Ints) -> int:
        """Remember some numbers; the result finds their positions again."""
        self.parts.append(numbers)
        self._starts.append(self._starts[-1] + len(numbers))
        return len(self.parts) - 1

    def distinct(self) -> tuple[Ints, int]:
        together = np.concatenate([*self.parts, np.empty(0, dtype=np.int64)])
        numbers, self._inverse = np.unique(together, return_inverse=True)
        return numbers, len(numbers)

    def positions(self, part: int) -> Ints:
        assert self._inverse is not None
        return self._inverse[self._starts[part] : self._starts[part + 1]]


def _with_centers(neighbors: Ints, centers: Ints) -> tuple[Ints, Ints]:
    """Neighbour texts followed by those that are only centres, and each centre's position among them."""
    distinct, inverse = np.unique(centers, return_inverse=True)
    found = np.searchsorted(neighbors, distinct)
    known = np.zeros(len(distinct), dtype=bool)
    inside = found < len(neighbors)
    known[inside] = neighbors[found[inside]] == distinct[inside]
    position = np.where(known, found, len(neighbors) + np.cumsum(~known) - 1)
    return np.concatenate([neighbors, distinct[~known]]), position[inverse]


def _by_edge_type(edges: list[tuple[EdgeType, Ints, _Numbering, int]]) -> dict[EdgeType, Neighbors]:
    return {
        edge_type: Neighbors(torch.from_numpy(center), torch.from_numpy(where.positions(part)))
        for edge_type, center, where, part in edges
        if len(center)
    }
