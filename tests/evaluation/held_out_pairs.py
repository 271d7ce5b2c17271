"""Link prediction of a run's own held-out pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from heterformer.batches.batcher import Batcher
from heterformer.distributed import ProcessGroup
from heterformer.evaluation.link_prediction import LinkPrediction, PairSet, predicted_pairs
from heterformer.evaluation.model_ranking import link_prediction_ranks
from heterformer.evaluation.open_run import OpenRun
from heterformer.evaluation.pair_ranking import RankingSizes
from heterformer.models.contract import NodeEncoder
from heterformer.network.schema import Relation
from heterformer.network.split.split import Part


def evaluate_link_prediction(
    model: NodeEncoder,
    batcher: Batcher,
    pair_sets: Sequence[PairSet],
    seed: int,
    folder: Path | None = None,
    processes: ProcessGroup | None = None,
    sizes: RankingSizes | None = None,
    link_weight: Callable[[Relation], float] | None = None,
) -> list[LinkPrediction]:
    """All rankings of the pairs."""
    ranks = link_prediction_ranks(model, batcher, pair_sets, seed, folder, processes, sizes, link_weight)
    return [r.result(pair_set, batcher.schema) for pair_set, r in zip(pair_sets, ranks, strict=True)]


def link_prediction_of(
    opened: OpenRun,
    parts: tuple[Part | Literal["new"], ...],
    processes: ProcessGroup | None = None,
    sizes: RankingSizes | None = None,
) -> list[LinkPrediction]:
    """The result of each part."""
    pair_sets = predicted_pairs(opened.network, {part: opened.split.part(part) for part in parts})
    model, batcher, folder = opened.model, opened.batcher, opened.run.path
    weight = opened.link_weight
    return evaluate_link_prediction(model, batcher, pair_sets, opened.seed, folder, processes, sizes, weight)
