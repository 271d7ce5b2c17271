"""A run opened for evaluation, and link prediction on its own split."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from heterformer.batches.batcher import Batcher
from heterformer.batches.visible import VisibleNetwork
from heterformer.device import Device, chosen_device
from heterformer.distributed import ProcessGroup
from heterformer.evaluation.link_prediction import (
    LinkPrediction,
    RankingSizes,
    evaluate_link_prediction,
    predicted_pairs,
)
from heterformer.models.contract import NodeEncoder
from heterformer.models.plm.loading import load_tokenizer
from heterformer.network.split.pairs import Pairs
from heterformer.network.split.split import Part, Split
from heterformer.network.store import Network
from heterformer.network.tokens import open_tokens
from heterformer.training.run import Run
from heterformer.training.unseen import adapt_to_network


@dataclass(frozen=True)
class OpenRun:
    """A run's best model with its network, its split, and batches that show no held-out pair."""

    run: Run
    network: Network
    split: Split
    model: NodeEncoder
    batcher: Batcher

    @property
    def seed(self) -> int:
        return self.run.options().seed


def open_run(path: Path | str, device: Device = "auto") -> OpenRun:
    """Open a run folder, finished or not: the best model so far."""
    run = Run(path)
    network = run.network()
    model = run.model().to(chosen_device(device))
    split = run.split(network)
    tokens = open_tokens(network, load_tokenizer(run.path))
    visible = VisibleNetwork.for_evaluation(network, split)
    with tempfile.TemporaryDirectory(prefix="heterformer-") as folder:
        # Training may not have seen all nodes.
        model, _ = adapt_to_network(model, visible, tokens, Path(folder))
    return OpenRun(run, network, split, model, Batcher(visible, tokens))


def link_prediction_of(
    opened: OpenRun,
    parts: tuple[Part, ...],
    processes: ProcessGroup | None = None,
    sizes: RankingSizes | None = None,
) -> list[LinkPrediction]:
    """Link prediction of the run's own held-out pairs."""
    pairs: dict[str, Pairs] = {part: getattr(opened.split, part) for part in parts}
    pair_sets = predicted_pairs(opened.network, pairs)
    model, batcher, folder = opened.model, opened.batcher, opened.run.path
    return evaluate_link_prediction(model, batcher, pair_sets, opened.seed, folder, processes, sizes)
