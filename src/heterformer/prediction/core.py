"""Classes or numbers of nodes, known or unseen, by the head of a fine-tuned run."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray
from torch import Tensor

from heterformer.arrays import Ints
from heterformer.batches.pairs import evaluation_sampler
from heterformer.batches.visible import VisibleNetwork
from heterformer.device import chosen_device, chosen_precision, computing_in, say_if_slow
from heterformer.files import replace_file
from heterformer.metrics import decided
from heterformer.models.heads import NodeHead
from heterformer.network.store import Network
from heterformer.options import with_keywords
from heterformer.prediction.options import PredictOptions, no_head
from heterformer.progress import progress_bar
from heterformer.states.pass_vectors import PassVectors
from heterformer.training.run import Run
from heterformer.training.supervision import node_outputs
from heterformer.training.unseen import adapt_to_network

NODES_AT_ONCE = 4096  # whose vectors are in memory


def predict(
    run: Run | Path | str,
    nodes: Iterable[str] | None = None,
    *,
    network: Network | Path | str | None = None,
    out: Path | str | None = None,
    options: PredictOptions | None = None,
    **keywords: Any,
) -> pl.DataFrame:
    """Predict the classes, or the number, of nodes.

    Args:
        run: A run that ``finetune`` wrote, or ``train`` with ``tasks=("classification",)``.
        nodes: Ids of the nodes; unless given, all nodes of the type that the run predicts for.
        network: Another network of the same types, with nodes that training did not see.
        out: Write the predictions to this Parquet file as well.
        options: How many classes to list, in which precision. Instead they can be given as keywords.
        keywords: Options by the names that they have on the command line: ``top=5``, ``overwrite=True``.

    Returns:
        A frame with the columns ``id``, ``class``, ``probability``, ``top_classes``, ``top_probabilities``
        and, where a node may have several classes, ``classes``; for numbers ``id`` and ``prediction``.

    Example:
        >>> from heterformer import predict
        >>> predict("runs/subjects", ["p01", "p02"])
        >>> predict("runs/subjects", network="grown.net", out="predictions.parquet")
    """
    options = with_keywords(options or PredictOptions(), keywords)
    if out is not None:
        out = Path(out)
        options.check_out(out)
    run = run if isinstance(run, Run) else Run(run)
    opened = run.network() if network is None else network
    opened = opened if isinstance(opened, Network) else Network.open(opened)
    predictor = Predictor(run, opened, options)
    frame = predictor.frame(predictor.rows(nodes))
    if out is not None:
        with replace_file(out) as partial:
            frame.write_parquet(partial)
    return frame


class Predictor:
    """A run's model with its head, for the nodes of one network."""

    def __init__(self, run: Run, network: Network, options: PredictOptions) -> None:
        self.network, self.options, self.seed = network, options, run.options().seed
        model = run.model().to(chosen_device(options.device))
        if model.head is None:
            raise no_head(run.path)
        tokens = model.open_tokens(network)
        visible = VisibleNetwork.whole(network)
        with tempfile.TemporaryDirectory(prefix="heterformer-") as folder:
            self.model, _ = adapt_to_network(model, visible, tokens, Path(folder))
        self.batcher = model.new_batcher(visible, tokens)

    @property
    def head(self) -> NodeHead:
        head = self.model.head
        assert head is not None
        return head

    def rows(self, nodes: Iterable[str] | None) -> Ints:
        """The rows of these ids, or of all nodes of the type."""
        node_type = self.head.config.node_type
        if nodes is None:
            return np.arange(self.network.schema.counts[node_type])
        return self.network.rows(node_type, list(nodes))

    def outputs(self, rows: Ints, nodes_at_once: int = NODES_AT_ONCE) -> Tensor:
        """(n, C): what the head says. Texts that several nodes need are read once, others not at all."""
        device = self.model.device
        precision = chosen_precision(self.options.precision, device)
        say_if_slow(precision, device)
        parts = [torch.empty(0, len(self.head.config.classes))]
        with (
            computing_in(precision, device),
            tempfile.TemporaryDirectory(prefix="heterformer-") as folder,
            progress_bar("predicting", len(rows), "nodes") as bar,
        ):
            sampler = evaluation_sampler(self.seed)
            vectors = PassVectors(self.model, self.batcher, sampler, Path(folder), bar.advance)
            for start in range(0, len(rows), nodes_at_once):
                some = rows[start : start + nodes_at_once]
                parts.append(node_outputs(self.model, self.batcher, some, self.seed, vectors=vectors))
        return torch.cat(parts)

    def frame(self, rows: Ints) -> pl.DataFrame:
        """The predictions for these rows, in their order."""
        config, outputs = self.head.config, self.outputs(rows)
        ids = {"id": self.network.ids(config.node_type, rows)}
        if config.kind == "number":
            return pl.DataFrame(ids | {"prediction": self.head.numbers(outputs).numpy()})
        shares = self.head.probabilities(outputs.to(self.model.device)).cpu().numpy()  # (n, C)
        columns = ids | _best_classes(shares, config.classes, self.options.top)
        if config.kind == "multi":
            columns["classes"] = _names(decided(outputs.numpy(), multi=True), config.classes)
        return pl.DataFrame(columns)


def _best_classes(
    shares: NDArray[np.float32], classes: Sequence[str], top: int
) -> dict[str, list[Any] | NDArray[Any]]:
    order = np.argsort(-shares, axis=1, kind="stable")[:, :top]  # (n, top)
    best = np.take_along_axis(shares, order, 1)
    return {
        "class": [classes[number] for number in order[:, 0]],
        "probability": best[:, 0],
        "top_classes": [[classes[number] for number in numbers] for numbers in order],
        "top_probabilities": best.tolist(),
    }


def _names(chosen: NDArray[np.bool_], classes: Sequence[str]) -> list[list[str]]:
    return [[classes[number] for number in np.flatnonzero(row).tolist()] for row in chosen]
