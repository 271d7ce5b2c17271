"""Ranks of held-out pairs by a model, which reads every node once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import Tensor

from heterformer.arrays import Ints
from heterformer.batches.batcher import Batcher
from heterformer.batches.pairs import evaluation_sampler
from heterformer.distributed import ProcessGroup
from heterformer.evaluation.link_prediction import PairSet, Ranks
from heterformer.evaluation.pair_ranking import RankingSizes, rank_pairs
from heterformer.models.contract import NodeEncoder
from heterformer.models.inference import StoredStates, center_vectors, vectors_of_type
from heterformer.network.schema import NodeType, Relation
from heterformer.ranking import Scorer
from heterformer.states.neighbor_states import stored_neighbor_states
from heterformer.states.vector_cache import VectorCache, VectorsOf


def link_prediction_ranks(
    model: NodeEncoder,
    batcher: Batcher,
    pair_sets: Sequence[PairSet],
    seed: int,
    folder: Path | None = None,
    processes: ProcessGroup | None = None,
    sizes: RankingSizes | None = None,
    link_weight: Callable[[Relation], float] | None = None,
) -> list[Ranks]:
    """The ranks of each pair set's keys, in the order of its pairs. What grows is kept in ``folder``.

    ``link_weight`` is as in ``rank_pairs``.
    """
    with stored_neighbor_states(model, batcher, evaluation_sampler(seed), folder, processes) as states:
        read = ModelVectors(model, batcher, seed, states, folder=folder, link_weight=link_weight)
        return read.rank(pair_sets, processes, sizes)


def vectors_alone(
    model: NodeEncoder, batcher: Batcher, seed: int, states: StoredStates, folder: Path | None = None
) -> VectorCache:
    """Vectors of text-rich nodes without their neighbours, each read once: no hidden pair changes them."""
    without_neighbors, sampler = Batcher(batcher.visible, batcher.tokens, {}), evaluation_sampler(seed)

    def read(node_type: NodeType, rows: Ints) -> Tensor:
        return center_vectors(model, without_neighbors, node_type, rows, sampler, states)

    return VectorCache(read, batcher.schema.counts, folder)


class ModelVectors:
    """What a model says of nodes whose neighbours ``batcher`` shows: their vectors, and scores of pairs.

    The batcher must hide the pairs to be ranked. Every node is read once with its neighbours, whatever its
    roles; ``alone`` has queries without theirs, and may be shared with other batchers of the network.
    """

    def __init__(
        self,
        model: NodeEncoder,
        batcher: Batcher,
        seed: int,
        states: StoredStates,
        alone: VectorCache | None = None,
        folder: Path | None = None,
        link_weight: Callable[[Relation], float] | None = None,
    ) -> None:
        """Vectors are kept in a temporary file in ``folder``; ``link_weight`` is as in ``rank_pairs``."""
        self.model, self.batcher, self.states = model, batcher, states
        self.link_weight = link_weight
        self.sampler = evaluation_sampler(seed)
        # A node is query, key and candidate.
        self.cached = VectorCache(self.vectors, batcher.schema.counts, folder)
        self.cached_alone = alone or vectors_alone(model, batcher, seed, states, folder)  # for every width

    def rank(
        self,
        pair_sets: Sequence[PairSet],
        processes: ProcessGroup | None = None,
        sizes: RankingSizes | None = None,
        width: int | None = None,
    ) -> list[Ranks]:
        """The ranks of each pair set's keys; queries with text are read a second time alone.

        With ``width`` by vectors that are cut to it, as ``embed`` cuts them.
        """
        visible = self.batcher.visible
        whole, alone = (self._cut(vectors, width) for vectors in (self.cached, self.cached_alone))
        return rank_pairs(
            pair_sets,
            whole,
            visible,
            self.scorer,
            read_alone=alone,
            processes=processes,
            sizes=sizes,
            link_weight=self.link_weight,
        )

    def _cut(self, vectors: VectorsOf, width: int | None) -> VectorsOf:
        if width is None:
            return vectors
        return lambda node_type, rows: self.model.shortened(vectors(node_type, rows), width)

    def vectors(self, node_type: NodeType, rows: Ints) -> Tensor:
        return vectors_of_type(self.model, self.batcher, node_type, rows, self.sampler, self.states)

    def scorer(self, relation: Relation) -> Scorer:
        def scores(queries: Tensor, keys: Tensor) -> Tensor:
            # Rounded scores would tie, and ties count against it.
            with torch.no_grad(), torch.autocast("cpu", enabled=False):
                return self.model.scores(queries, keys, relation.name)

        return scores
