"""Warm-up of a head: it learns on the vectors as they are before the whole model learns with it.

A head that starts at random sends gradients of its own ignorance through the model, and needs hundreds of
steps for what fixed vectors tell at once. So it is fitted to them first (Kumar et al., 2022).
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from heterformer.batches.batcher import Batcher
from heterformer.batches.pairs import evaluation_sampler
from heterformer.distributed import ProcessGroup
from heterformer.network.stratified import TRAIN, VALIDATION
from heterformer.network.targets import Targets
from heterformer.progress import progress_bar
from heterformer.states.pass_vectors import PassVectors
from heterformer.training.early_stopping import EarlyStopping
from heterformer.training.supervision import Supervision

NODES = 20_000  # of a part that are read at most: a head of this size needs no more
RATE, BATCH, PATIENCE, EPOCHS = 1e-3, 128, 10, 200


@dataclass(frozen=True)
class HeadWarmUpResult:
    """What a head was fitted to, and for how long."""

    nodes: int
    epochs: int


@dataclass(frozen=True)
class LabelledVectors:
    """Nodes' vectors and what is to be predicted for each."""

    vectors: Tensor  # (n, d)
    targets: Tensor  # (n, C)


def warm_head_up(
    supervision: Supervision,
    batcher: Batcher,
    validation: Batcher,
    folder: Path,
    seed: int,
    processes: ProcessGroup,
    precision: AbstractContextManager[object],
) -> HeadWarmUpResult:
    """Fit the head to the model's present vectors, which are computed in ``precision``.

    ``batcher`` shows what training may see, ``validation`` what validation may. Each process computes a
    part of the vectors; the main one fits, and all have its weights afterwards.
    """
    parts = [some_nodes(supervision.targets.of_part(part), seed) for part in (TRAIN, VALIDATION)]
    labelled = list[LabelledVectors]()
    with progress_bar("reading labelled nodes", sum(map(len, parts)), "nodes") as bar, precision:
        for targets, shown in zip(parts, (batcher, validation), strict=True):
            vectors_of = PassVectors(supervision.model, shown, evaluation_sampler(seed), folder, bar.advance)
            own = vectors_of(targets.node_type, targets.rows[processes.share(len(targets))])
            labelled.append(LabelledVectors(processes.all_gather(own), torch.from_numpy(targets.values)))
    train, held_out = labelled
    epochs = fit_head(supervision, train, held_out, seed) if processes.is_main else 0
    processes.broadcast_weights(supervision.head)
    return HeadWarmUpResult(len(parts[0]), epochs)


def some_nodes(targets: Targets, seed: int, most: int = NODES) -> Targets:
    """All labelled nodes, or as many as are enough."""
    if len(targets) <= most:
        return targets
    chosen = np.sort(np.random.default_rng(seed).permutation(len(targets))[:most])
    return replace(
        targets, rows=targets.rows[chosen], values=targets.values[chosen], part=targets.part[chosen]
    )


def fit_head(supervision: Supervision, train: LabelledVectors, validation: LabelledVectors, seed: int) -> int:
    """Fit the head by the loss of the run; gives the epochs until the validation loss was lowest.

    Nobody else's random numbers depend on those that are drawn here.
    """
    head, was_training = supervision.head, supervision.head.training
    optimizer = torch.optim.Adam(head.parameters(), RATE)
    order, early = torch.Generator().manual_seed(seed), EarlyStopping(PATIENCE)
    best = {name: value.clone() for name, value in head.state_dict().items()}
    with torch.random.fork_rng(devices=[head.temperature.device] if head.temperature.is_cuda else []):
        torch.manual_seed(seed)  # for dropout
        for epoch in range(EPOCHS):
            head.train()
            for batch in torch.split(torch.randperm(len(train.vectors), generator=order), BATCH):
                optimizer.zero_grad()
                loss = supervision.sum_of_losses(train.vectors[batch], train.targets[batch])
                (loss / len(batch)).backward()  # type: ignore[no-untyped-call]
                optimizer.step()
            head.eval()
            with torch.no_grad():
                loss = supervision.sum_of_losses(validation.vectors, validation.targets)
            if early.update(-loss.item(), epoch):
                best = {name: value.clone() for name, value in head.state_dict().items()}
            if early.should_stop:
                break
    head.load_state_dict(best)
    head.train(was_training)
    optimizer.zero_grad()  # the run's own optimiser finds no gradients of this one
    return early.best_step + 1
