"""Batches of pairs and of nodes, from the visible network and its packed tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
import torch
from numpy.typing import NDArray

from heterformer.arrays import Ints
from heterformer.batches.assembly import SampledEdges, assemble
from heterformer.batches.batch import Batch, PairBatch
from heterformer.batches.false_negatives import MASK_ENTRIES, false_negative_masks
from heterformer.batches.sampling import Sample, Sampler, SeededSampler
from heterformer.batches.visible import VisibleNetwork
from heterformer.errors import InputError
from heterformer.network.schema import EdgeType, NodeType
from heterformer.network.split.pairs import Pairs
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
        for node_type in self.fan_out:
            if node_type not in self.schema.node_types:
                known = ", ".join(map(repr, self.schema.node_types))
                raise InputError(f"a fan-out is given for {node_type!r}, the node types are {known}.")

    def sample(self, node_type: NodeType, rows: Ints, sampler: Sampler) -> SampledNodes:
        """The nodes with their sampled neighbours, of which batches can be made."""
        edges = []
        for neighbor_type in self.neighbor_types(node_type):
            sample = sampler.sample(self.visible, node_type, neighbor_type, rows, self.fan_out[neighbor_type])
            edges.append(SampledEdges(neighbor_type, self.edge_types(node_type, neighbor_type), *sample))
        return SampledNodes(node_type, rows, tuple(edges))

    def nodes(self, node_type: NodeType, rows: Ints, sampler: Sampler) -> Batch:
        """The given nodes as centres."""
        return self.batch_of(self.sample(node_type, rows, sampler))

    def batch_of(self, nodes: SampledNodes) -> Batch:
        """Nodes whose neighbours are sampled already as centres."""
        centers = nodes.rows + self.tokens.text_offset[nodes.node_type]
        return assemble(self.schema, self.tokens, centers, nodes.edges)

    def pairs(self, pairs: Pairs, key: np.uint64, *, false_negatives: bool = False) -> PairBatch:
        """Queries and keys as centres; neither end of a pair sees the other.

        ``key`` is that of the seeded samples.
        """
        return self.several([pairs], [key], false_negatives=false_negatives)[0]

    def several(
        self,
        steps: Sequence[Pairs],
        keys: Sequence[np.uint64],
        *,
        false_negatives: bool = False,
        shares: Sequence[slice] | None = None,
        bare: Sequence[NDArray[np.bool_]] | None = None,
        negatives: Sequence[Ints] | None = None,
        bare_negatives: Sequence[NDArray[np.bool_]] | None = None,
        mask_entries: int = MASK_ENTRIES,
    ) -> list[PairBatch]:
        """A batch for each step, as ``pairs`` makes it; sampled together, since calls cost more than work.

        With ``shares`` it has only those pairs of its step as centres, but the mask of all keys. ``bare`` has
        (pairs, 2) for each step: which queries and keys have no neighbours. ``negatives`` are further nodes
        of the keys' type for each step, of which a share of the pairs has its share.
        """
        relation = self.schema.predicted
        shares = shares or [slice(0, len(pairs)) for pairs in steps]
        masks: Sequence[NDArray[np.bool_] | None] = [None] * len(steps)
        if false_negatives:
            masks = false_negative_masks(self.visible, steps, shares, mask_entries, negatives)
        own = [pairs[share] for pairs, share in zip(steps, shares, strict=True)]
        further = negatives or [np.empty(0, dtype=np.int64)] * len(steps)
        parts = [_share_of(len(n), s, len(p)) for n, s, p in zip(further, shares, steps, strict=True)]
        own_negatives = [nodes[part] for nodes, part in zip(further, parts, strict=True)]
        nobody = [np.full(len(nodes), -1) for nodes in own_negatives]
        queries, targets = ([np.ascontiguousarray(pairs[:, side]) for pairs in own] for side in (0, 1))
        if relation.source == relation.target:
            both = [np.concatenate(all_) for all_ in zip(queries, targets, own_negatives, strict=True)]
            partners = [np.concatenate(all_) for all_ in zip(targets, queries, nobody, strict=True)]
            groups = [_Centers(relation.source, both, relation.source, partners)]
        else:
            keys_and_negatives = [np.concatenate(n) for n in zip(targets, own_negatives, strict=True)]
            partners = [np.concatenate(n) for n in zip(queries, nobody, strict=True)]
            groups = [
                _Centers(relation.source, queries, relation.target, targets),
                _Centers(relation.target, keys_and_negatives, relation.source, partners),
            ]
        without = None
        if bare is not None:
            without = [chosen[share].T.flatten() for chosen, share in zip(bare, shares, strict=True)]
            if bare_negatives is not None:
                marked = [chosen[part] for chosen, part in zip(bare_negatives, parts, strict=True)]
                without = [np.concatenate(both_kinds) for both_kinds in zip(without, marked, strict=True)]
        return [
            PairBatch(
                **{field.name: getattr(batch, field.name) for field in fields(batch)},
                task=relation.name,
                pairs=share.stop - share.start,
                pair_offset=share.start,
                false_negatives=None if mask is None else torch.from_numpy(mask),
            )
            for batch, share, mask in zip(self._assembled(groups, keys, without), shares, masks, strict=True)
        ]

    def _assembled(
        self,
        groups: Sequence[_Centers],
        keys: Sequence[np.uint64],
        bare: Sequence[NDArray[np.bool_]] | None = None,
    ) -> list[Batch]:
        """A batch for each key; the centres marked in ``bare`` have no neighbours."""
        sampled: list[list[SampledEdges]] = [[] for _ in keys]
        offsets = [0] * len(keys)  # of the group's centres among those of each batch
        for group in groups:
            for neighbor_type in self.neighbor_types(group.node_type):
                for number, edges in enumerate(self._sampled(group, neighbor_type, keys, offsets)):
                    sampled[number].append(edges if bare is None else edges.without(bare[number]))
            offsets = [start + len(rows) for start, rows in zip(offsets, group.rows, strict=True)]
        batches = []
        for number, edges_of_batch in enumerate(sampled):
            centers = np.concatenate([g.rows[number] + self.tokens.text_offset[g.node_type] for g in groups])
            batches.append(assemble(self.schema, self.tokens, centers, edges_of_batch))
        return batches

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
            self.fan_out[neighbor_type],
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
        """Those of which neighbours are sampled at all."""
        return [t for t in self.schema.neighbor_types_of(node_type) if self.fan_out.get(t, 0) > 0]

    def edge_types(self, center: NodeType, neighbor: NodeType) -> tuple[tuple[int, EdgeType], ...]:
        """The edge types that join a centre to such neighbours, with their numbers in the schema."""
        numbered = enumerate(self.schema.edge_types)
        return tuple((n, e) for n, e in numbered if (e.center, e.neighbor) == (center, neighbor))


@dataclass(frozen=True)
class SampledNodes:
    """Nodes of one text-rich type with their sampled neighbours."""

    node_type: NodeType
    rows: Ints
    edges: tuple[SampledEdges, ...]  # one for each neighbour type

    def __len__(self) -> int:
        return len(self.rows)

    def select(self, positions: Ints) -> SampledNodes:
        """The nodes at ``positions``, in that order, as if they had been sampled alone."""
        edges = tuple(edges.select(positions, len(self.rows)) for edges in self.edges)
        return SampledNodes(self.node_type, self.rows[positions], edges)


@dataclass(frozen=True)
class _Centers:
    """The centres of one type, batch by batch, and the node that each must not see."""

    node_type: NodeType
    rows: Sequence[Ints]
    partner_type: NodeType
    partners: Sequence[Ints]


def _share_of(count: int, share: slice, pairs: int) -> slice:
    """As large a part of ``count`` things as ``share`` is of the ``pairs``."""
    return slice(count * share.start // max(1, pairs), count * share.stop // max(1, pairs))


def _cut(sample: Sample, start: int, stop: int, shift: int) -> Sample:
    """Some of the edges, their centres counted from elsewhere."""
    part = slice(start, stop)
    return Sample(sample.center[part] + shift, sample.neighbor[part], sample.edge_type[part])
