"""Vectors of some nodes in one pass over a network: each node and each text is read once, when needed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from heterformer.arrays import Ints
from heterformer.batches.batcher import Batcher
from heterformer.batches.sampling import Sampler
from heterformer.models.contract import NodeEncoder
from heterformer.models.inference import (
    CHUNK,
    NODES_AT_ONCE,
    Advance,
    drawn_once,
    each_text,
    evaluating,
    sampled_text_rows,
    sampled_textless_vectors,
    sampled_vectors,
)
from heterformer.network.schema import NodeType
from heterformer.states.neighbor_states import AT_ONCE, read_neighbors
from heterformer.states.scratch_rows import ScratchRows
from heterformer.states.store import StateStore
from heterformer.states.vector_cache import VectorCache


class PassVectors:
    """Computes the vectors of nodes; whatever is asked for shares the texts that were read before.

    Unlike ``stored_neighbor_states`` it reads only texts that some node needs. States of texts and vectors of
    nodes are in temporary files (in ``folder``). All of it belongs to the model's present weights and to one
    precision, that of the caller.
    """

    def __init__(
        self,
        model: NodeEncoder,
        batcher: Batcher,
        sampler: Sampler,
        folder: Path | None = None,
        advance: Advance | None = None,
        nodes_at_once: int = NODES_AT_ONCE,
        stored: StateStore | None = None,
    ) -> None:
        """``advance`` counts each node once: a text that is read is a part of those that needed it first.

        ``stored`` has states of texts that were read before, with the same weights and in the same precision.
        """
        self.model, self.batcher, self.sampler = model, batcher, sampler
        self._advance, self._nodes_at_once = advance or (lambda _: None), nodes_at_once
        self._second_hop = drawn_once(batcher, sampler)
        count = len(batcher.tokens)
        self._stored = stored
        self._alone, self._with_neighbors = ScratchRows(count, folder), ScratchRows(count, folder)
        self._vectors = VectorCache(self._compute, batcher.schema.counts, folder)

    def __call__(self, node_type: NodeType, rows: Ints) -> Tensor:
        """(n, d): the vectors of the nodes in ``rows``, with text or without."""
        return self._vectors(node_type, rows)

    def _compute(self, node_type: NodeType, rows: Ints) -> Tensor:
        parts, size = [torch.empty(0, self.model.width)], self._nodes_at_once
        for start in range(0, len(rows), size):
            some = rows[start : start + size].astype(np.int64)
            nodes = self.batcher.sample(node_type, some, self.sampler)
            near = [some[:0], *sampled_text_rows(self.batcher.tokens, nodes.edges)]
            with evaluating(self.model):
                part = self._read(np.unique(np.concatenate(near)), len(nodes))

            def advance(centers: float, part: float = part) -> None:
                self._advance(part * centers)

            if node_type in self.batcher.schema.text_rich:
                vectors = sampled_vectors(self.model, self.batcher, nodes, self._states, advance=advance)
            else:
                vectors = sampled_textless_vectors(self.model, self.batcher, nodes, self._states)
                advance(len(nodes))
            parts.append(vectors)
        return torch.cat(parts)

    def _states(self, text_rows: Ints) -> Tensor:
        """(N, S, d): the states of texts that are read already."""
        states = self._alone.read(text_rows)
        if self._second_hop is not None and states.numel():
            states[:, -1] = self._with_neighbors.read(text_rows)
        return states

    def _read(self, near: Ints, nodes: int) -> float:
        """Read what is new of the neighbours of that many nodes; the part of a node that a text was."""
        new, hop, tokens = self._with_neighbors.missing(near), self._second_hop, self.batcher.tokens
        further: list[Ints] = []
        if hop is not None:
            drawn = (hop(node_type, rows) for node_type, rows in tokens.by_type(new))
            further = [texts for edges in drawn for texts in sampled_text_rows(tokens, edges)]
        missing = self._alone.missing(np.concatenate([near, *further]))
        if self._stored is not None:
            missing = self._copied(missing, self._stored)
        part = nodes / max(nodes + len(missing), 1)
        read, model, tell = self.model.text_states, self.model, lambda texts: self._advance(part * texts)
        for start in range(0, max(len(missing), 1), CHUNK):
            some = missing[start : start + CHUNK]
            states = each_text(read, tokens, some, model.device, advance=tell)
            self._alone.write(some, states)
        if hop is not None and states.shape[1]:  # a model that looks at no neighbour's text has no states
            for start in range(0, len(new), AT_ONCE):
                some = new[start : start + AT_ONCE]
                vectors = read_neighbors(model, self.batcher, hop, some, self._alone.read_last)
                self._with_neighbors.write(some, vectors)
        return part

    def _copied(self, missing: Ints, stored: StateStore) -> Ints:
        """What is still missing once the stored states are there."""
        there = np.isin(missing, stored.text_rows)
        known = missing[there]
        for start in range(0, len(known), CHUNK):
            some = known[start : start + CHUNK]
            self._alone.write(some, torch.from_numpy(stored.read(some)).float())
        return missing[~there]
