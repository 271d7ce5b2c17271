"""A supervised task of a run: its labelled nodes, its loss, its validation, and its calibration."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heterformer.arrays import Ints
from heterformer.batches.batcher import Batcher
from heterformer.batches.labelled import LabelledBatch, LabelledBatches
from heterformer.batches.pairs import evaluation_sampler
from heterformer.batches.visible import VisibleNetwork
from heterformer.distributed import ProcessGroup
from heterformer.metrics import classification_metrics, decided, regression_metrics
from heterformer.models.contract import NodeEncoder
from heterformer.models.heads import HeadConfig, NodeHead
from heterformer.models.inference import evaluating, vectors_of_type
from heterformer.network.split.split import Split
from heterformer.network.store import Network
from heterformer.network.stratified import TRAIN, VALIDATION
from heterformer.network.target_options import SupervisedTask
from heterformer.network.targets import Targets, class_weights, node_targets
from heterformer.states.vector_cache import VectorsOf
from heterformer.training.calibration import best_temperature
from heterformer.training.supervision_options import SupervisionOptions


def run_targets(network: Network, task: SupervisedTask, options: SupervisionOptions, split: Split) -> Targets:
    """The targets of a run: it does not learn from labels of nodes that its split hides from training."""
    views = {TRAIN: VisibleNetwork.for_training, VALIDATION: VisibleNetwork.for_validation}
    hidden = {part: view(network, split).hidden for part, view in views.items()}
    return node_targets(network, task, options, hidden)


def head_config(targets: Targets, options: SupervisionOptions) -> HeadConfig:
    """The head that a task needs; numbers are standardised by the training part."""
    mean, scale = 0.0, 1.0
    if targets.kind == "number":
        numbers = targets.of_part(TRAIN).values
        mean, scale = float(numbers.mean()), float(numbers.std()) or 1.0
    return HeadConfig(
        targets.node_type,
        targets.kind,
        targets.classes,
        options.head_width,
        options.head_dropout,
        mean,
        scale,
    )


class Supervision:
    """What a model with a head learns from labelled nodes."""

    def __init__(
        self,
        model: NodeEncoder,
        batcher: Batcher,
        targets: Targets,
        options: SupervisionOptions,
        batch_size: int,
        seed: int,
        processes: ProcessGroup | None = None,
        nodes_at_once: int | None = None,
    ) -> None:
        """``batch_size`` nodes are a process's part of a step."""
        processes = processes or ProcessGroup()
        self.model, self.targets, self.options, self.seed = model, targets, options, seed
        self.batches = LabelledBatches(
            batcher,
            targets.of_part(TRAIN),
            batch_size * processes.world_size,
            seed,
            (processes.rank, processes.world_size),
            nodes_at_once,
        )
        self._weights = None
        if options.class_weights == "balanced" and targets.kind != "number":
            self._weights = torch.from_numpy(class_weights(targets)).to(model.device)

    @property
    def head(self) -> NodeHead:
        head = self.model.head
        assert head is not None
        return head

    def loss(self, vectors: Tensor, batch: LabelledBatch) -> Tensor:
        """What the nodes of a batch add to the mean over those of the step."""
        assert batch.targets is not None
        total = self.sum_of_losses(vectors, batch.targets)
        return self.options.loss_weight * total / batch.nodes_of_step

    def sum_of_losses(self, vectors: Tensor, targets: Tensor) -> Tensor:
        """Over nodes with these (n, d) vectors and (n, C) targets, which may be on another device."""
        vectors = vectors.to(self.model.device)
        outputs = self.head(vectors)
        return self.head.loss(outputs, targets.to(vectors.device), self._weights, self.options.smoothing)

    def metrics(
        self,
        batcher: Batcher,
        part: int,
        precision: AbstractContextManager[object] | None = None,
        vectors: VectorsOf | None = None,
    ) -> dict[str, float]:
        """The metrics of one part's nodes, whose vectors are computed unless ``vectors`` gives them."""
        chosen = self.targets.of_part(part)
        outputs = node_outputs(self.model, batcher, chosen.rows, self.seed, precision, vectors=vectors)
        return target_metrics(self.head, outputs, chosen)

    def calibrate(self, batcher: Batcher, precision: AbstractContextManager[object] | None = None) -> None:
        """Choose the temperature of predicted probabilities on the validation part."""
        if self.targets.kind == "number":
            return
        chosen = self.targets.of_part(VALIDATION)
        logits = node_outputs(self.model, batcher, chosen.rows, self.seed, precision)
        temperature = best_temperature(logits, torch.from_numpy(chosen.truth), self.targets.kind)
        self.head.temperature.fill_(temperature)


def node_outputs(
    model: NodeEncoder,
    batcher: Batcher,
    rows: Ints,
    seed: int,
    precision: AbstractContextManager[object] | None = None,
    vectors: VectorsOf | None = None,
) -> Tensor:
    """(n, C): what the model's head says of some nodes; their vectors are computed unless given."""
    head = model.head
    assert head is not None
    with precision or nullcontext():
        if vectors is None:
            vectors = partial(vectors_of_type, model, batcher, sampler=evaluation_sampler(seed))
        own = vectors(head.config.node_type, rows)
    with evaluating(model):
        outputs: Tensor = head(own.to(model.device)).float().cpu()
    return outputs


def target_metrics(head: NodeHead, outputs: Tensor, targets: Targets) -> dict[str, float]:
    """The metrics of a head's outputs for labelled nodes."""
    if targets.kind == "number":
        numbers: NDArray[np.float32] = head.numbers(outputs).numpy()
        return regression_metrics(targets.values[:, 0], numbers)
    return classification_metrics(targets.truth, decided(outputs.numpy(), targets.kind == "multi"))
