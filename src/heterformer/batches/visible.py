"""Which edges a neighbourhood may show: all but the held-out pairs and, in training, the hidden nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from heterformer.arrays import Ints, ranges
from heterformer.network.adjacency import Adjacency
from heterformer.network.schema import NodeType, Relation
from heterformer.network.split.digest import pairs_digest
from heterformer.network.split.pairs import Pairs
from heterformer.network.split.split import Split
from heterformer.network.store import Network
from heterformer.network.tokens import PackedTokens

Times = NDArray[np.float64]
EvaluatedPart = Literal["validation", "test", "new"]


@dataclass(frozen=True)
class VisibleAdjacency:
    """An adjacency some of whose entries are gone. Nothing is copied: only the gone positions are stored."""

    adjacency: Adjacency
    gone: NDArray[np.int64]  # ascending positions in adjacency.neighbor

    def counts(self, centers: Ints) -> NDArray[np.int64]:
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
        held_out: Mapping[str, Pairs],
        hidden: Mapping[NodeType, Ints] | None = None,
        before: float | None = None,
        as_of: float | None = None,
    ) -> None:
        """``held_out`` are pairs by the name of their relation.

        With ``before`` no edge from that time on is visible. With ``as_of`` times matter: both ends of a pair
        see nothing later than the pair, a node by itself nothing later than that, or than its first time.
        """
        self.network = network
        self.before, self.as_of = before, as_of
        self._times: dict[tuple[NodeType, NodeType], Times | None] = {}
        self._first_times: dict[NodeType, Times] = {}
        self._held_out = dict(held_out)
        self.hidden = dict(hidden or {})
        self._cache: dict[tuple[NodeType, NodeType], VisibleAdjacency] = {}

    @classmethod
    def for_training(cls, network: Network, split: Split) -> VisibleNetwork:
        """Without the held-out pairs, the edges of hidden nodes, and edges from a time split's cut on."""
        cut = None if split.times is None else split.times.train_until
        return cls(network, split.hidden_pairs, split.hidden, before=cut, as_of=cut)

    @classmethod
    def for_validation(cls, network: Network, split: Split) -> VisibleNetwork:
        """What training sees; after a split by time also what later nodes have, as of the part's beginning.

        All query nodes of the validation part may be later than training: without their own edges early
        stopping would watch texts alone. Textless nodes that training has no edge of stay hidden, for their
        embeddings are as they started.
        """
        training = cls.for_training(network, split)
        if split.times is None:
            return training
        unknown = {t: training.without_texts(t) for t in network.schema.textless}
        return cls(network, split.hidden_pairs, unknown, as_of=split.times.train_until)

    @classmethod
    def for_evaluation(
        cls,
        network: Network,
        split: Split,
        others: Mapping[str, Pairs] | None = None,
        part: EvaluatedPart = "test",
    ) -> VisibleNetwork:
        """Without the held-out pairs and ``others`` to be asked for; what training did not see is there.

        After a split by time a node by itself is read as of the beginning of the ``part`` that is asked for:
        the pairs of the part may be that early.
        """
        held_out, as_of = split.hidden_pairs | dict(others or {}), None
        if split.times is not None:
            as_of = split.times.train_until if part == "validation" else split.times.validation_until
            if part == "new":
                any_time = cls(network, {}, as_of=as_of)
                for name, pairs in split.part("new").items():
                    times = any_time.pair_times(network.schema.relation(name), pairs)
                    as_of = min([as_of, *([] if times is None else times)])
        return cls(network, held_out, as_of=as_of)

    @classmethod
    def whole(cls, network: Network) -> VisibleNetwork:
        """Every edge: for vectors whose use is not to predict these edges."""
        return cls(network, {})

    def hidden_texts(self, tokens: PackedTokens) -> Ints:
        """The text rows of the hidden nodes."""
        rows = [tokens.text_offset[t] + r for t, r in self.hidden.items() if t in tokens.text_offset]
        return np.concatenate([*rows, np.empty(0, dtype=np.int64)])

    def hidden_pairs(self) -> dict[str, str]:
        """A digest of the pairs that each relation hides; of the whole network there are none."""
        schema, hidden = self.network.schema, {n: p for n, p in self._held_out.items() if len(p)}
        return {n: pairs_digest(self.network, schema.relation(n), pairs) for n, pairs in hidden.items()}

    def without_hidden(self, pairs: Pairs, relation: Relation) -> Pairs:
        """The pairs of a relation neither of whose ends is hidden."""
        none = np.empty(0, dtype=np.int64)
        shown = [
            ~np.isin(pairs[:, side], self.hidden.get(node_type, none))
            for side, node_type in enumerate((relation.source, relation.target))
        ]
        return pairs[np.logical_and(*shown)]

    def without_texts(self, node_type: NodeType) -> Ints:
        """The nodes of a type that have no visible edge to a node with text."""
        schema = self.network.schema
        rows = np.arange(schema.counts[node_type])
        text_rich = [t for t in schema.neighbor_types_of(node_type) if t in schema.text_rich]
        edges = [self.adjacency(node_type, t).counts(rows) for t in text_rich]
        return rows[np.sum(edges, axis=0) == 0] if edges else rows

    def adjacency(self, center: NodeType, neighbor: NodeType) -> VisibleAdjacency:
        """The visible part of the adjacency of two types."""
        key = (center, neighbor)
        if key not in self._cache:
            self._cache[key] = VisibleAdjacency(self.network.adjacency(*key), self._gone(*key))
        return self._cache[key]

    def until(self, node_type: NodeType, rows: Ints) -> Times | None:
        """For nodes by themselves: the time of each after which it sees nothing; None without times."""
        if self.as_of is None or self.before is not None:  # what is too late is gone
            return None
        return np.maximum(self.as_of, self._firsts(node_type)[rows])

    def first_times(self, node_type: NodeType, rows: Ints) -> Times | None:
        """Since when each node is seen by anybody; None if times do not matter.

        It is its own time or that of its first edge, whichever is earlier: an edge that has a time of its own
        may be earlier than its nodes. What a node has had since then is not later than whoever sees it.
        """
        return None if self.as_of is None else self._firsts(node_type)[rows]

    def shown(self, center: NodeType, neighbor: NodeType) -> NDArray[np.bool_]:
        """Which entries of an adjacency the centres see by themselves."""
        view = self.adjacency(center, neighbor)
        shown = np.ones(len(view.adjacency.neighbor), dtype=bool)
        shown[view.gone] = False
        until = self.until(center, np.arange(len(view.adjacency.degrees)))
        if until is not None and (times := self.entry_times(center, neighbor)) is not None:
            shown &= times <= np.repeat(until, view.adjacency.degrees)
        return shown

    def links(self, node_type: NodeType, relation: Relation) -> Ints:
        """(n,): how many visible edges of a relation each node of a type has, as a target where it can be."""
        is_target = node_type == relation.target
        other = relation.source if is_target else relation.target
        edge_type = relation.backward if is_target else relation.forward
        adjacency = self.network.adjacency(node_type, other)
        counted = adjacency.edge_type == self.network.schema.edge_types.index(edge_type)  # (E,)
        counted &= self.shown(node_type, other)
        nodes = self.network.schema.counts[node_type]
        links: Ints = np.bincount(np.repeat(np.arange(nodes), adjacency.degrees)[counted], minlength=nodes)
        return links

    def log_links(self, node_type: NodeType, relation: Relation) -> NDArray[np.float32]:
        """(n,): the log of these numbers, and one.

        Trained against keys of a batch, which are met as often as they are linked, a score is the log of how
        much likelier than usual a link is. With this it is the log of how likely it is, up to a constant.
        """
        return np.log1p(self.links(node_type, relation)).astype(np.float32)

    def pair_times(self, relation: Relation, pairs: Pairs) -> Times | None:
        """The time of each pair: its edge's or, without one, its later end's; None if times do not matter."""
        if self.as_of is None:
            return None
        query, key = np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])
        times = np.maximum(self._node_times(relation.source)[query], self._node_times(relation.target)[key])
        entry_times = self.entry_times(relation.source, relation.target)
        if entry_times is None:
            return times
        adjacency = self.network.adjacency(relation.source, relation.target)
        number = self.network.schema.edge_types.index(relation.forward)
        entry, stop = adjacency.between(query, key)
        while (rest := np.flatnonzero(entry < stop)).size:  # as many rounds as edge types join two nodes
            own = rest[adjacency.edge_type[entry[rest]] == number]
            times[own] = entry_times[entry[own]]
            entry = entry + (entry < stop)
        return times

    def entry_times(self, center: NodeType, neighbor: NodeType) -> Times | None:
        """Since when each entry of an adjacency exists: its edge's time, without one that of its later end.

        Unknown times count as the earliest. None if nothing in it has a time.
        """
        if (center, neighbor) not in self._times:
            self._times[center, neighbor] = self._entry_times(center, neighbor)
        return self._times[center, neighbor]

    def _entry_times(self, center: NodeType, neighbor: NodeType) -> Times | None:
        adjacency = self.network.adjacency(center, neighbor)
        if adjacency.time is None and not (
            self.network.has_times(center) or self.network.has_times(neighbor)
        ):
            return None
        centers = np.repeat(self._node_times(center), adjacency.degrees)
        times: Times = np.maximum(centers, self._node_times(neighbor)[adjacency.neighbor])
        if adjacency.time is None:
            return times
        return np.where(np.isnan(adjacency.time), times, adjacency.time)

    def _firsts(self, node_type: NodeType) -> Times:
        """-inf where neither the node nor one of its edges has a time."""
        if node_type not in self._first_times:
            times = self._node_times(node_type)
            first = np.where(np.isneginf(times), np.inf, times)
            for neighbor in self.network.schema.neighbor_types_of(node_type):
                degrees = self.network.adjacency(node_type, neighbor).degrees
                if (entry_times := self.entry_times(node_type, neighbor)) is None:
                    first[degrees > 0] = -np.inf  # by an edge without any time it was always seen
                else:
                    np.minimum.at(first, np.repeat(np.arange(len(degrees)), degrees), entry_times)
            self._first_times[node_type] = np.where(np.isposinf(first), -np.inf, first)
        return self._first_times[node_type]

    def _node_times(self, node_type: NodeType) -> Times:
        """-inf where unknown."""
        if not self.network.has_times(node_type):
            return np.full(self.network.schema.counts[node_type], -np.inf)
        times = self.network.times(node_type)
        return np.where(np.isnan(times), -np.inf, times)

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
        if self.before is not None and (times := self.entry_times(center, neighbor)) is not None:
            pieces.append(np.flatnonzero(times >= self.before))
        gone: NDArray[np.int64] = np.unique(np.concatenate([*pieces, np.empty(0, dtype=np.int64)]))
        return gone
