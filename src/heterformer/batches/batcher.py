"""Batches of pairs and of nodes, from the visible network and its packed tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from numpy.typing import NDArray

from heterformer.arrays import Ints
from heterformer.batches.assembly import SampledEdges, SecondHop, TextlessEnd, assemble
from heterformer.batches.batch import Batch, CenterAttributes, PairBatch
from heterformer.batches.false_negatives import MASK_ENTRIES, false_negative_masks
from heterformer.batches.sampling import Sample, Sampler, SeededSampler
from heterformer.batches.visible import Times, VisibleNetwork
from heterformer.errors import InputError
from heterformer.network.encoding import AttributeRows
from heterformer.network.schema import EdgeType, NodeType, Relation
from heterformer.network.split.pairs import Pairs
from heterformer.network.tokens import PackedTokens


class Batcher:
    """Makes batches; it holds no state, so equal arguments give equal batches."""

    def __init__(
        self,
        visible: VisibleNetwork,
        tokens: PackedTokens,
        fan_out: Mapping[NodeType, int] | None = None,
        attributes: Mapping[NodeType, AttributeRows] | None = None,
        textless_fan_out: int = 0,
        second_hop: int = 0,
    ) -> None:
        """``fan_out`` are the sampled neighbours of a text-rich node by type, ``textless_fan_out`` those with
        text of a textless one, ``second_hop`` those of each type that a text-rich neighbour has in turn.
        ``attributes`` are those of all nodes of text-rich types, for a model that reads them."""
        self.visible = visible
        self.attributes = dict(attributes or {})
        self.tokens = tokens
        self.schema = visible.network.schema
        self.textless_fan_out, self.second_hop = textless_fan_out, second_hop
        self.fan_out = dict(fan_out if fan_out is not None else self.schema.neighbors)
        for node_type in self.fan_out:
            if node_type not in self.schema.node_types:
                known = ", ".join(map(repr, self.schema.node_types))
                raise InputError(f"a fan-out is given for {node_type!r}, the node types are {known}.")

    def sample(self, node_type: NodeType, rows: Ints, sampler: Sampler) -> SampledNodes:
        """The nodes with their sampled neighbours, of which batches can be made."""
        edges, until = [], self.visible.until(node_type, rows)
        for neighbor_type in self.neighbor_types(node_type):
            most = self._fan_out(node_type, neighbor_type)
            sample = sampler.sample(self.visible, node_type, neighbor_type, rows, most, until)
            edges.append(SampledEdges(neighbor_type, self.edge_types(node_type, neighbor_type), *sample))
        return SampledNodes(node_type, rows, tuple(edges), sampler)

    def showing(self, visible: VisibleNetwork) -> Batcher:
        """The same over another view of the network."""
        return Batcher(
            visible, self.tokens, self.fan_out, self.attributes, self.textless_fan_out, self.second_hop
        )

    def without_second_hop(self) -> Batcher:
        """The same for neighbours whose states have their own neighbours in them already."""
        return Batcher(self.visible, self.tokens, self.fan_out, self.attributes, self.textless_fan_out)

    def nodes(self, node_type: NodeType, rows: Ints, sampler: Sampler) -> Batch:
        """The given nodes as centres."""
        return self.batch_of(self.sample(node_type, rows, sampler))

    def batch_of(self, nodes: SampledNodes) -> Batch:
        """Nodes whose neighbours are sampled already as centres."""
        further = self.further_neighbors(nodes.sampler)
        if nodes.node_type in self.schema.textless:
            none, end = np.empty(0, dtype=np.int64), TextlessEnd(nodes.node_type, nodes.rows, nodes.edges)
            return assemble(self.schema, self.tokens, none, (), end, further)
        centers = nodes.rows + self.tokens.text_offset[nodes.node_type]
        batch = assemble(self.schema, self.tokens, centers, nodes.edges, second_hop=further)
        if not self.attributes:
            return batch
        return replace(batch, attributes=self._attributes_of([(nodes.node_type, nodes.rows)]))

    def texts_with_neighbors(self, text_rows: Ints, second_hop: SecondHop) -> Batch:
        """Texts that are somebody's neighbours, ascending, with their own neighbours; no centres."""
        none = np.empty(0, dtype=np.int64)
        return assemble(self.schema, self.tokens, none, (), second_hop=second_hop, near=text_rows)

    def further_neighbors(self, sampler: Sampler) -> SecondHop | None:
        """What draws the neighbours of neighbours; None unless they are read.

        A node has the same ones whoever's neighbour it is. After a split by time they are those that it had
        when it could first be seen, and so not later than whoever sees it.
        """
        if not self.second_hop:
            return None

        def sampled(node_type: NodeType, rows: Ints) -> Iterator[SampledEdges]:
            until = self.visible.first_times(node_type, rows)
            for neighbor_type in self.neighbor_types(node_type):
                sample = sampler.sample(self.visible, node_type, neighbor_type, rows, self.second_hop, until)
                yield SampledEdges(neighbor_type, self.edge_types(node_type, neighbor_type), *sample)

        return sampled

    def pairs(
        self,
        pairs: Pairs,
        key: np.uint64,
        *,
        false_negatives: bool = False,
        relation: Relation | None = None,
    ) -> PairBatch:
        """Queries and keys as centres; neither end of a pair sees the other.

        ``key`` is that of the seeded samples. Pairs are of the first predicted relation unless it is given.
        """
        return self.several([pairs], [key], false_negatives=false_negatives, relation=relation)[0]

    def several(
        self,
        steps: Sequence[Pairs],
        keys: Sequence[np.uint64],
        *,
        false_negatives: bool = False,
        shares: Sequence[slice] | None = None,
        alone: Sequence[NDArray[np.bool_]] | None = None,
        negatives: Sequence[Ints] | None = None,
        negatives_alone: Sequence[NDArray[np.bool_]] | None = None,
        mask_entries: int = MASK_ENTRIES,
        relation: Relation | None = None,
        log_frequencies: NDArray[np.float32] | None = None,
    ) -> list[PairBatch]:
        """A batch for each step, as ``pairs`` makes it; sampled together, since calls cost more than work.

        With ``shares`` it has only those pairs of its step as centres, but the mask of all keys. ``alone``
        has (pairs, 2) for each step: which queries and keys have no neighbours. ``negatives`` are further
        nodes of the keys' type for each step, of which a share of the pairs has its share. The batch has the
        ``log_frequencies`` (one for each node of that type) of all keys and negatives of its step.
        """
        relation = relation or self.schema.predicted[0]
        shares = shares or [slice(0, len(pairs)) for pairs in steps]
        masks: Sequence[NDArray[np.bool_] | None] = [None] * len(steps)
        if false_negatives:
            masks = false_negative_masks(self.visible, steps, shares, mask_entries, negatives, relation)
        own = [pairs[share] for pairs, share in zip(steps, shares, strict=True)]
        further = negatives or [np.empty(0, dtype=np.int64)] * len(steps)
        parts = [_share_of(len(n), s, len(p)) for n, s, p in zip(further, shares, steps, strict=True)]
        own_negatives = [nodes[part] for nodes, part in zip(further, parts, strict=True)]
        no_partner = [np.full(len(nodes), -1) for nodes in own_negatives]
        queries, targets = ([np.ascontiguousarray(pairs[:, side]) for pairs in own] for side in (0, 1))
        until = self._pair_times(relation, own)
        # Negatives are read as of the pairs that they are contrasted with, in turn.
        later = until and [np.resize(t, len(n)) for t, n in zip(until, own_negatives, strict=True)]
        if relation.source == relation.target:
            both = [np.concatenate(all_) for all_ in zip(queries, targets, own_negatives, strict=True)]
            partners = [np.concatenate(all_) for all_ in zip(targets, queries, no_partner, strict=True)]
            limits = until and [np.concatenate([t, t, n]) for t, n in zip(until, later or (), strict=True)]
            groups = [_Centers(relation.source, both, relation.source, partners, limits)]
        else:
            keys_and_negatives = [np.concatenate(n) for n in zip(targets, own_negatives, strict=True)]
            partners = [np.concatenate(n) for n in zip(queries, no_partner, strict=True)]
            limits = until and [np.concatenate(both) for both in zip(until, later or (), strict=True)]
            groups = [
                _Centers(relation.source, queries, relation.target, targets, until),
                _Centers(relation.target, keys_and_negatives, relation.source, partners, limits),
            ]
        without = None
        if alone is not None:
            without = [chosen[share].T.flatten() for chosen, share in zip(alone, shares, strict=True)]
            if negatives_alone is not None:
                marked = [chosen[part] for chosen, part in zip(negatives_alone, parts, strict=True)]
                without = [np.concatenate(both_kinds) for both_kinds in zip(without, marked, strict=True)]
        return [
            PairBatch(
                **{field.name: getattr(batch, field.name) for field in fields(batch)},
                task=relation.name,
                textless_queries=relation.source in self.schema.textless,
                pairs=share.stop - share.start,
                pair_offset=share.start,
                false_negatives=None if mask is None else torch.from_numpy(mask),
                log_frequencies=None
                if log_frequencies is None
                else torch.from_numpy(log_frequencies[np.concatenate([pairs[:, 1], nodes])]),
            )
            for batch, share, mask, pairs, nodes in zip(
                self._assembled(groups, keys, without), shares, masks, steps, further, strict=True
            )
        ]

    def _pair_times(self, relation: Relation, steps: Sequence[Pairs]) -> list[Times] | None:
        """Until when both ends of each pair see, step by step; None if times do not matter."""
        if self.visible.as_of is None:
            return None
        times = self.visible.pair_times(relation, np.concatenate(steps))
        if times is None:
            return None
        return np.split(times, np.cumsum([len(pairs) for pairs in steps])[:-1])

    def _assembled(
        self,
        groups: Sequence[_Centers],
        keys: Sequence[np.uint64],
        alone: Sequence[NDArray[np.bool_]] | None = None,
    ) -> list[Batch]:
        """A batch for each key; the centres marked in ``alone`` have no neighbours."""
        text_rich = [g for g in groups if g.node_type in self.schema.text_rich]
        sampled: list[list[list[SampledEdges]]] = []  # of each group and batch
        offsets = [0] * len(keys)  # of the group's centres among those of each batch
        for group in groups:
            # A textless end's centres are counted by themselves, and so are those of the other end.
            own = offsets if len(text_rich) == len(groups) else [0] * len(keys)
            edges = [self._sampled(group, t, keys, own) for t in self.neighbor_types(group.node_type)]
            by_batch = [[of_type[number] for of_type in edges] for number in range(len(keys))]
            if alone is not None:
                marked = [b[offset - o :] for b, offset, o in zip(alone, offsets, own, strict=True)]
                by_batch = [[e.without(m) for e in some] for some, m in zip(by_batch, marked, strict=True)]
            sampled.append(by_batch)
            offsets = [start + len(rows) for start, rows in zip(offsets, group.rows, strict=True)]
        batches = []
        for number in range(len(keys)):
            centers = [g.rows[number] + self.tokens.text_offset[g.node_type] for g in text_rich]
            edges_of_batch, end = list[SampledEdges](), None
            for group, by_batch in zip(groups, sampled, strict=True):
                if group.node_type in self.schema.text_rich:
                    edges_of_batch += by_batch[number]
                else:
                    end = TextlessEnd(group.node_type, group.rows[number], by_batch[number])
            further = self.further_neighbors(SeededSampler(keys[number]))
            batch = assemble(self.schema, self.tokens, np.concatenate(centers), edges_of_batch, end, further)
            if self.attributes:
                without = None if alone is None else alone[number]
                rows = [(g.node_type, g.rows[number]) for g in groups]
                batch = replace(batch, attributes=self._attributes_of(rows, without))
            batches.append(batch)
        return batches

    def _attributes_of(
        self, groups: Sequence[tuple[NodeType, Ints]], alone: NDArray[np.bool_] | None = None
    ) -> dict[NodeType, CenterAttributes]:
        """Of the centres in groups of one type each; those marked in ``alone`` have none, like a query."""
        attributes: dict[NodeType, CenterAttributes] = {}
        offset, place = 0, 0  # among the batch's centres, which have text, and among all that were given
        for node_type, rows in groups:
            is_shown = np.ones(len(rows), dtype=bool) if alone is None else ~alone[place : place + len(rows)]
            place += len(rows)
            if node_type in self.attributes:
                center = offset + np.flatnonzero(is_shown)
                tensors = map(torch.from_numpy, (center, *self.attributes[node_type].select(rows[is_shown])))
                attributes[node_type] = CenterAttributes(*tensors)
            offset += len(rows) * (node_type in self.schema.text_rich)
        return attributes

    def _sampled(
        self, group: _Centers, neighbor_type: NodeType, keys: Sequence[np.uint64], offsets: Sequence[int]
    ) -> list[SampledEdges]:
        """One neighbour type's sample, cut into the batches it is for."""
        lengths = [len(rows) for rows in group.rows]
        sample = SeededSampler(np.repeat(np.array(keys, dtype=np.uint64), lengths)).sample(
            self.visible,
            group.node_type,
            neighbor_type,
            np.concatenate(group.rows),
            self._fan_out(group.node_type, neighbor_type),
            None if group.until is None else np.concatenate(group.until),
            np.concatenate(group.partners) if group.partner_type == neighbor_type else None,
        )
        edge_types = self.edge_types(group.node_type, neighbor_type)
        begins = np.concatenate([[0], np.cumsum(lengths)])
        cuts = np.searchsorted(sample.center, begins)
        return [
            SampledEdges(neighbor_type, edge_types, *_cut(sample, a, b, offset - begin))
            for a, b, begin, offset in zip(cuts[:-1], cuts[1:], begins, offsets, strict=False)
        ]

    def neighbor_types(self, node_type: NodeType) -> list[NodeType]:
        """Those of which neighbours are sampled at all; of a textless node they are text-rich."""
        return [t for t in self.schema.neighbor_types_of(node_type) if self._fan_out(node_type, t) > 0]

    def neighbor_texts(self) -> Ints:
        """The rows of all texts that can be sampled as somebody's neighbours, ascending."""
        is_neighbor = np.zeros(len(self.tokens), dtype=bool)
        for center in self.schema.node_types:
            for neighbor in self.neighbor_types(center):
                if neighbor in self.tokens.text_offset:
                    nodes = self.visible.network.adjacency(center, neighbor).neighbor
                    seen = nodes[self.visible.shown(center, neighbor)].astype(np.int64)
                    is_neighbor[seen + self.tokens.text_offset[neighbor]] = True
        return np.flatnonzero(is_neighbor)

    def _fan_out(self, node_type: NodeType, neighbor_type: NodeType) -> int:
        """How many neighbours of a type a node is given."""
        if node_type in self.schema.textless:
            return self.textless_fan_out if neighbor_type in self.schema.text_rich else 0
        return self.fan_out.get(neighbor_type, 0)

    def edge_types(self, center: NodeType, neighbor: NodeType) -> tuple[tuple[int, EdgeType], ...]:
        """The edge types that join a centre to such neighbours, with their numbers in the schema."""
        numbered = enumerate(self.schema.edge_types)
        return tuple((n, e) for n, e in numbered if (e.center, e.neighbor) == (center, neighbor))


@dataclass(frozen=True)
class SampledNodes:
    """Nodes of one type with their sampled neighbours."""

    node_type: NodeType
    rows: Ints
    edges: tuple[SampledEdges, ...]  # one for each neighbour type
    sampler: Sampler  # that drew them, and draws theirs

    def __len__(self) -> int:
        return len(self.rows)

    def select(self, positions: Ints) -> SampledNodes:
        """The nodes at ``positions``, in that order, as if they had been sampled alone."""
        edges = tuple(edges.select(positions, len(self.rows)) for edges in self.edges)
        return SampledNodes(self.node_type, self.rows[positions], edges, self.sampler)


@dataclass(frozen=True)
class _Centers:
    """The centres of one type, batch by batch, the node that each must not see, and until when it sees."""

    node_type: NodeType
    rows: Sequence[Ints]
    partner_type: NodeType
    partners: Sequence[Ints]
    until: Sequence[Times] | None = None


def _share_of(count: int, share: slice, pairs: int) -> slice:
    """As large a part of ``count`` things as ``share`` is of the ``pairs``."""
    return slice(count * share.start // max(1, pairs), count * share.stop // max(1, pairs))


def _cut(sample: Sample, start: int, stop: int, shift: int) -> Sample:
    """Some of the edges, their centres counted from elsewhere."""
    part = slice(start, stop)
    return Sample(sample.center[part] + shift, sample.neighbor[part], sample.edge_type[part])
