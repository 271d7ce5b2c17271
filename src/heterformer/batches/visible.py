"""Which edges a neighbourhood may show: all but the held-out pairs and, in training, the hidden nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from heterformer.arrays import ranges
from heterformer.network.adjacency import Adjacency
from heterformer.network.schema import NodeType
from heterformer.network.split.digest import pairs_digest
from heterformer.network.split.pairs import Pairs
from heterformer.network.split.split import Split
from heterformer.network.store import Network
from heterformer.network.tokens import PackedTokens

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class VisibleAdjacency:
    """An adjacency some of whose entries are gone. Nothing is copied: only the gone positions are stored."""

    adjacency: Adjacency
    gone: NDArray[np.int64]  # ascending positions in adjacency.neighbor

    def counts(self, centers: Rows) -> NDArray[np.int64]:
        """How many entries each centre still has."""
        start, stop = self.adjacency.indptr[centers], self.adjacency.indptr[centers + 1]
        return self.rank(stop) - self.rank(start)

    def rank(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """The number of visible entries before each position."""
        return positions - np.searchsorted(self.gone, positions)

    def position(self, ranks: NDArray[np.int64]) -> NDArray[np.int64]:
        """The inverse: the position of the visible entry that has each number of visible ones before it."""
        # gone[i] - i visible entries precede the i-th gone one, and that never decreases.
        return ranks + np.searchsorted(self._visible_before_gone, ranks, side="right")

    @cached_property
    def _visible_before_gone(self) -> NDArray[np.int64]:
        return self.gone - np.arange(len(self.gone))


class VisibleNetwork:
    """A network as training or evaluation may see it."""

    def __init__(
        self,
        network: Network,
        held_out: Pairs,
        hidden: Mapping[NodeType, Rows] | None = None,
        others: Mapping[str, Pairs] | None = None,
    ) -> None:
        """``held_out`` are pairs of the predicted relation, ``others`` those of other ones, by name."""
        self.network = network
        self._held_out = {network.schema.predict: held_out, **(others or {})}
        self.hidden = dict(hidden or {})
        self._cache: dict[tuple[NodeType, NodeType], VisibleAdjacency] = {}

    @classmethod
    def for_training(cls, network: Network, split: Split) -> VisibleNetwork:
        """Without the held-out pairs and without any edge of a hidden node."""
        return cls(network, split.held_out, split.hidden, split.others)

    @classmethod
    def for_evaluation(
        cls, network: Network, split: Split, others: Mapping[str, Pairs] | None = None
    ) -> VisibleNetwork:
        """Without the held-out pairs and ``others`` to be asked for; what training did not see is there."""
        return cls(network, split.held_out, None, split.others | dict(others or {}))

    @classmethod
    def whole(cls, network: Network) -> VisibleNetwork:
        """Every edge: for vectors whose use is not to predict these edges."""
        return cls(network, np.empty((0, 2), dtype=np.int64))

    def hidden_texts(self, tokens: PackedTokens) -> Rows:
        """The text rows of the hidden nodes."""
        rows = [tokens.text_offset[t] + r for t, r in self.hidden.items() if t in tokens.text_offset]
        return np.concatenate([*rows, np.empty(0, dtype=np.int64)])

    def hidden_pairs(self) -> dict[str, str]:
        """A digest of the pairs that each relation hides; of the whole network there are none."""
        schema, hidden = self.network.schema, {n: p for n, p in self._held_out.items() if len(p)}
        return {n: pairs_digest(self.network, schema.relation(n), pairs) for n, pairs in hidden.items()}

    def adjacency(self, center: NodeType, neighbor: NodeType) -> VisibleAdjacency:
        """The visible part of the adjacency of two types."""
        key = (center, neighbor)
        if key not in self._cache:
            self._cache[key] = VisibleAdjacency(self.network.adjacency(*key), self._gone(*key))
        return self._cache[key]

    def _gone(self, center: NodeType, neighbor: NodeType) -> NDArray[np.int64]:
        adjacency = self.network.adjacency(center, neighbor)
        pieces = []
        for name, pairs in self._held_out.items():
            relation, (query, key) = self.network.schema.relation(name), pairs.T
            if (center, neighbor) == (relation.source, relation.target):
                pieces.append(ranges(*adjacency.between(query, key)))
            if (center, neighbor) == (relation.target, relation.source):
                pieces.append(ranges(*adjacency.between(key, query)))
        if (rows := self.hidden.get(center)) is not None:
            pieces.append(ranges(adjacency.indptr[rows], adjacency.indptr[rows + 1]))
        if (rows := self.hidden.get(neighbor)) is not None:
            back = self.network.adjacency(neighbor, center)
            entries = ranges(back.indptr[rows], back.indptr[rows + 1])
            seers = back.neighbor[entries].astype(np.int64)
            seen = np.searchsorted(back.indptr, entries, side="right") - 1
            pieces.append(ranges(*adjacency.between(seers, seen)))
        gone: NDArray[np.int64] = np.unique(np.concatenate([*pieces, np.empty(0, dtype=np.int64)]))
        return gone
