"""The figure that early stopping watches: in-batch PREC of the validation pairs."""

from __future__ import annotations

from heterformer.batches.batcher import Batcher
from heterformer.batches.pairs import evaluation_key
from heterformer.models.contract import NodeEncoder
from heterformer.models.inference import center_vectors
from heterformer.network.pairs import Pairs
from heterformer.training.ranking import RankingMetrics, in_batch_ranks


def in_batch_metrics(
    model: NodeEncoder, batcher: Batcher, pairs: Pairs, batch_size: int, seed: int
) -> RankingMetrics:
    """The paper's evaluation: each query ranks the keys of its batch of pairs, neighbours being fixed."""
    relation, key = batcher.schema.predicted, evaluation_key(seed)
    queries = center_vectors(model, batcher, relation.source, pairs[:, 0], key)
    keys = center_vectors(model, batcher, relation.target, pairs[:, 1], key)
    return RankingMetrics.of(in_batch_ranks(queries, keys, batch_size, model.scores))
