"""The figure that early stopping watches: in-batch PREC of the validation pairs."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import numpy as np
import torch

from heterformer.batches.batcher import Batcher
from heterformer.batches.pairs import evaluation_sampler
from heterformer.distributed import ProcessGroup
from heterformer.metrics import ranking_metrics
from heterformer.models.contract import NodeEncoder
from heterformer.models.inference import center_vectors
from heterformer.network.split.pairs import Pairs
from heterformer.ranking import in_batch_ranks


def chance_prec(pairs: Pairs, batch_size: int) -> float:
    """The PREC that guessing gives: 1 / the different keys of each pair's batch."""
    batches = [pairs[start : start + batch_size, 1] for start in range(0, len(pairs), batch_size)]
    return sum(len(keys) / len(np.unique(keys)) for keys in batches) / max(len(pairs), 1)


def in_batch_metrics(
    model: NodeEncoder,
    batcher: Batcher,
    pairs: Pairs,
    batch_size: int,
    seed: int,
    processes: ProcessGroup | None = None,
    precision: AbstractContextManager[object] | None = None,
) -> dict[str, float]:
    """The paper's evaluation: each query ranks the keys of its batch of pairs, neighbours being fixed.

    Of several processes each ranks a part of the batches; all have the figures of the whole. Vectors are
    computed in ``precision``, as an autocast; scores never are: rounded ones would tie.
    """
    processes = processes or ProcessGroup()
    batches = processes.share(-(-len(pairs) // batch_size))
    pairs = pairs[batches.start * batch_size : batches.stop * batch_size]
    relation, sampler = batcher.schema.predicted, evaluation_sampler(seed)
    with precision or nullcontext():
        queries = center_vectors(model, batcher, relation.source, pairs[:, 0], sampler)
        keys = center_vectors(model, batcher, relation.target, pairs[:, 1], sampler)
    key_rows = torch.from_numpy(np.ascontiguousarray(pairs[:, 1]))
    ranks = in_batch_ranks(queries, keys, batch_size, model.scores, key_rows)
    return ranking_metrics(in_batch=processes.all_gather(ranks).cpu().numpy())
