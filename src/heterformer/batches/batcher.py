"""Batches of pairs and of nodes, from the visible network and its packed tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from heterformer.arrays import Ints
from heterformer.batches.assembly import SampledEdges, assemble
from heterformer.batches.batch import Batch
from heterformer.batches.randomness import stream_key
from heterformer.batches.sampling import sample_neighbors
from heterformer.batches.stable import StableSample
from heterformer.batches.visible import VisibleNetwork
from heterformer.errors import InputError
from heterformer.network.schema import NodeType
from heterformer.network.split.pairs import Pairs
from heterformer.network.tokens import PackedTokens

ENTRIES = 1 << 18  # of masks that are made at once: calls cost more than work, but large masks need memory


class Batcher:
    """Makes batches; it holds no state, so equal arguments give equal batches."""

    def __init__(
        self,
        visible: VisibleNetwork,
        tokens: PackedTokens,
        fan_out: Mapping[NodeType, int] | None = None,
        stable: StableSample | None = None,
    ) -> None:
        self.visible = visible
        self.tokens = tokens
        self.stable = stable  # draws the neighbours of ``nodes``, whatever the key, if there is one
        self.schema = visible.network.schema
        self.fan_out = dict(fan_out if fan_out is not None else self.schema.neighbors)
        for node_type in self.fan_out:
            if node_type not in self.schema.node_types:
                known = ", ".join(map(repr, self.schema.node_types))
                raise InputError(f"a fan-out is given for {node_type!r}, the node types are {known}.")

    def nodes(self, node_type: NodeType, rows: Ints, key: np.uint64) -> Batch:
        """The given nodes as centres."""
        return self._assembled([_Centers(node_type, [rows])], [key], [None])[0]

    def pairs(self, pairs: Pairs, key: np.uint64, *, false_negatives: bool = False) -> Batch:
        """Queries, then keys, as centres; neither end of a pair sees the other."""
        return self.several([pairs], [key], false_negatives=false_negatives)[0]

    def several(
        self,
        parts: Sequence[Pairs],
        keys: Sequence[np.uint64],
        *,
        false_negatives: bool = False,
        shares: Sequence[slice] | None = None,
    ) -> list[Batch]:
        """A batch for each part, as ``pairs`` makes it; sampled together, since calls cost more than work.

        With ``shares`` it has only those pairs of its part as centres, but the mask of all keys.
        """
        relation = self.schema.predicted
        queries = [np.ascontiguousarray(part[:, 0]) for part in parts]
        nodes = [np.ascontiguousarray(part[:, 1]) for part in parts]
        shares = shares or [slice(0, len(part)) for part in parts]
        masks = self._false_negatives(queries, nodes, shares) if false_negatives else [None] * len(parts)
        queries = [ends[share] for ends, share in zip(queries, shares, strict=True)]
        nodes = [ends[share] for ends, share in zip(nodes, shares, strict=True)]
        if relation.source == relation.target:
            both = [np.concatenate(ends) for ends in zip(queries, nodes, strict=True)]
            partners = [np.concatenate(ends) for ends in zip(nodes, queries, strict=True)]
            groups = [_Centers(relation.source, both, relation.source, partners)]
        else:
            groups = [
                _Centers(relation.source, queries, relation.target, nodes),
                _Centers(relation.target, nodes, relation.source, queries),
            ]
        batches = self._assembled(groups, keys, masks)
        return [replace(b, first_pair=share.start) for b, share in zip(batches, shares, strict=True)]

    def false_negatives(self, queries: Ints, keys: Ints) -> NDArray[np.bool_]:
        """(P, P): key j is not query i's own, but no negative either.

        A visible edge joins them, either way round, or key j is the same node as key i or as the
        query. Held-out edges are not consulted: that they exist must not reach training.
        """
        return self._false_negatives([queries], [keys], [slice(0, len(queries))])[0]

    def _false_negatives(
        self, queries: Sequence[Ints], keys: Sequence[Ints], shares: Sequence[slice]
    ) -> list[NDArray[np.bool_]]:
        """(p, P) each: the rows of a share of the queries."""
        masks = [np.empty((s.stop - s.start, len(k)), dtype=bool) for s, k in zip(shares, keys, strict=True)]
        for rows in _groups([mask.shape for mask in masks]):
            asked = [slice(shares[n].start + r.start, shares[n].start + r.stop) for n, r in rows]
            each = list(zip((n for n, _ in rows), asked, strict=True))
            query = np.concatenate([np.repeat(queries[n][r], len(keys[n])) for n, r in each])
            key = np.concatenate([np.tile(keys[n], r.stop - r.start) for n, r in each])
            own = np.concatenate([np.repeat(keys[n][r], len(keys[n])) for n, r in each])
            sizes = [masks[n][r].size for n, r in rows]
            found = np.split(self._no_negatives(query, key, own), np.cumsum(sizes)[:-1])
            for (n, r), part in zip(rows, found, strict=True):
                masks[n][r] = part.reshape(-1, len(keys[n]))
        for mask, share in zip(masks, shares, strict=True):
            np.fill_diagonal(mask[:, share], False)
        return masks

    def _no_negatives(self, query: Ints, key: Ints, own: Ints) -> NDArray[np.bool_]:
        """Of each query and key, whether the key, if it is not the query's own, is no negative."""
        relation = self.schema.predicted
        edge_types = [relation.forward]
        mask: NDArray[np.bool_] = key == own
        if relation.source == relation.target:
            edge_types.append(relation.backward)
            mask |= query == key
        visible = self.visible.adjacency(relation.source, relation.target)
        lower, upper = visible.adjacency.between(query, key)
        seen = np.flatnonzero(visible.rank(upper) > visible.rank(lower))
        numbers = [self.schema.edge_types.index(e) for e in edge_types]
        mask[seen] |= visible.adjacency.holds(lower[seen], upper[seen], numbers)
        return mask

    def _assembled(
        self,
        groups: Sequence[_Centers],
        keys: Sequence[np.uint64],
        masks: Sequence[NDArray[np.bool_] | None],
    ) -> list[Batch]:
        sampled: list[list[SampledEdges]] = [[] for _ in keys]
        first = [0] * len(keys)  # the position of the group's first centre in each batch
        for group in groups:
            for neighbor_type in self.schema.neighbor_types_of(group.node_type):
                if self.fan_out.get(neighbor_type, 0) > 0:
                    for number, edges in enumerate(self._sampled(group, neighbor_type, keys, first)):
                        sampled[number].append(edges)
            first = [start + len(rows) for start, rows in zip(first, group.parts, strict=True)]
        batches = []
        for number, mask in enumerate(masks):
            centers = np.concatenate([g.parts[number] + self.tokens.first[g.node_type] for g in groups])
            square = None if mask is None else torch.from_numpy(mask)
            batches.append(assemble(self.schema, self.tokens, centers, sampled[number], square))
        return batches

    def _sampled(
        self, group: _Centers, neighbor_type: NodeType, keys: Sequence[np.uint64], first: Sequence[int]
    ) -> list[SampledEdges]:
        """One neighbour type's sample, cut into the batches it is for."""
        types = self.schema.node_types
        number = types.index(group.node_type) * len(types) + types.index(neighbor_type)
        streams = np.array([stream_key(int(key), number) for key in keys], dtype=np.uint64)
        lengths = [len(rows) for rows in group.parts]
        centers, most = np.concatenate(group.parts), self.fan_out[neighbor_type]
        if self.stable is not None and group.partner_type is None:
            sample = self.stable.draw(group.node_type, neighbor_type, centers, most)
        else:
            sample = sample_neighbors(
                self.visible.adjacency(group.node_type, neighbor_type),
                centers,
                most,
                np.repeat(streams, lengths),
                np.concatenate(group.partners) if group.partner_type == neighbor_type else None,
            )
        edge_types = tuple(
            (number, e)
            for number, e in enumerate(self.schema.edge_types)
            if (e.center, e.neighbor) == (group.node_type, neighbor_type)
        )
        begins = np.concatenate([[0], np.cumsum(lengths)])
        cuts = np.searchsorted(sample.center, begins)
        return [
            SampledEdges(
                neighbor_type,
                edge_types,
                sample.center[a:b] - (begin - start),
                sample.neighbor[a:b],
                sample.edge_type[a:b],
            )
            for a, b, begin, start in zip(cuts[:-1], cuts[1:], begins, first, strict=False)
        ]


@dataclass(frozen=True)
class _Centers:
    """The centres of one type, batch by batch, and the node that each must not see."""

    node_type: NodeType
    parts: Sequence[Ints]
    partner_type: NodeType | None = None
    partners: Sequence[Ints] = ()


def _groups(shapes: Sequence[tuple[int, ...]]) -> Iterator[list[tuple[int, slice]]]:
    """Rows of several matrices, as (matrix, rows), in groups of about ``ENTRIES`` entries."""
    group: list[tuple[int, slice]] = []
    room = ENTRIES
    for number, (count, width) in enumerate(shapes):
        most = max(1, ENTRIES // max(1, width))
        for start in range(0, count, most):
            rows = slice(start, min(start + most, count))
            if group and (rows.stop - start) * width > room:
                yield group
                group, room = [], ENTRIES
            group.append((number, rows))
            room -= (rows.stop - start) * width
    if group:
        yield group
