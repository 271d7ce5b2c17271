"""The head before the first step: it is fitted to vectors as they are, and nothing else moves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from heterformer.network.stratified import TRAIN, VALIDATION
from heterformer.network.targets import Targets
from heterformer.training.head_warm_up import (
    HeadWarmUpResult,
    LabelledVectors,
    fit_head,
    some_nodes,
    warm_head_up,
)
from heterformer.training.loop import Trainer
from heterformer.training.run import Run
from heterformer.training.supervision_options import SupervisionOptions
from heterformer.training.train import train
from tests.learning import tiny_network
from tests.training.test_supervision import LABELS, new_trainer, supervised

WITHOUT = SupervisionOptions(type="paper", min_members=5, head_warm_up=False)


def warmed(trainer: Trainer) -> HeadWarmUpResult:
    assert trainer.supervision is not None
    return warm_head_up(
        trainer.supervision,
        trainer.batcher,
        trainer.validation,
        trainer.run.path,
        trainer.options.seed,
        trainer.processes,
        trainer.autocast(),
    )


def planted_vectors(count: int, classes: int, seed: int) -> LabelledVectors:
    """Vectors that tell the class of their node."""
    rng = np.random.default_rng(seed)
    chosen = rng.integers(0, classes, count)
    vectors = rng.normal(size=(count, 16)) * 0.3
    vectors[np.arange(count), chosen] += 2
    targets = np.eye(classes, dtype=np.float32)[chosen]
    return LabelledVectors(torch.from_numpy(vectors).float(), torch.from_numpy(targets))


def accuracy(trainer: Trainer, nodes: LabelledVectors) -> float:
    assert trainer.supervision is not None
    with torch.no_grad():
        outputs = trainer.supervision.head.eval()(nodes.vectors)
    return float((outputs.argmax(1) == nodes.targets.argmax(1)).float().mean())


def test_the_head_alone_learns_what_vectors_tell(tmp_path: Path) -> None:
    trainer = new_trainer(tmp_path / "run")
    supervision = trainer.supervision
    assert supervision is not None
    classes = len(supervision.head.config.classes)
    train_part, held_out, test = (planted_vectors(200, classes, seed) for seed in range(3))
    before = {name: value.clone() for name, value in trainer.model.state_dict().items()}
    assert accuracy(trainer, test) < 0.6
    assert fit_head(supervision, train_part, held_out, 0) > 1
    assert accuracy(trainer, test) > 0.95
    moved = {n for n, v in trainer.model.state_dict().items() if not torch.equal(v, before[n])}
    assert moved
    assert all(name.startswith("head.layers.") for name in moved)
    assert all(p.grad is None for p in trainer.model.parameters())


def test_the_weights_with_the_lowest_validation_loss_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of labels that are noise the first epochs are the best ones."""
    trainer = new_trainer(tmp_path / "run")
    supervision = trainer.supervision
    assert supervision is not None
    classes = len(supervision.head.config.classes)
    train_part, held_out = planted_vectors(60, classes, 0), planted_vectors(60, classes, 1)
    noise = torch.eye(classes)[torch.from_numpy(np.random.default_rng(2).integers(0, classes, 60))]
    losses, sum_of_losses = list[float](), supervision.sum_of_losses

    def recorded(*arguments: Any) -> torch.Tensor:
        loss = sum_of_losses(*arguments)
        if not torch.is_grad_enabled():
            losses.append(loss.item())
        return loss

    monkeypatch.setattr(supervision, "sum_of_losses", recorded)
    epochs = fit_head(supervision, LabelledVectors(train_part.vectors, noise), held_out, 0)
    assert losses[-1] > min(losses) == losses[epochs - 1]
    supervision.head.eval()
    with torch.no_grad():
        assert sum_of_losses(held_out.vectors, held_out.targets).item() == pytest.approx(min(losses))


def test_nobody_elses_random_numbers_change(tmp_path: Path) -> None:
    trainer = new_trainer(tmp_path / "run")
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    warmed(trainer)
    assert torch.equal(torch.rand(3), expected)


def test_it_sees_the_training_and_validation_parts_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = new_trainer(tmp_path / "run")
    assert trainer.supervision is not None
    seen: list[LabelledVectors] = []

    def recorded(_: Any, *parts: Any) -> int:
        seen.extend(parts[:2])
        return 1

    monkeypatch.setattr("heterformer.training.head_warm_up.fit_head", recorded)
    result = warmed(trainer)
    targets = trainer.supervision.targets
    for part, labelled in zip((TRAIN, VALIDATION), seen, strict=True):
        assert np.array_equal(labelled.targets.numpy(), targets.of_part(part).values)
        assert labelled.vectors.shape == (len(targets.of_part(part)), trainer.model.width)
    assert result == HeadWarmUpResult(len(targets.of_part(TRAIN)), 1)


def test_many_labels_are_sampled() -> None:
    rows = np.arange(100)
    values = np.eye(100, dtype=np.float32)
    targets = Targets("paper", "single", tuple(map(str, rows)), rows, values, np.zeros(100, dtype=np.int64))
    some = some_nodes(targets, seed=0, most=10)
    assert len(some) == 10
    assert np.array_equal(some.values.argmax(1), some.rows)
    assert some_nodes(targets, seed=0, most=100) is targets


def test_a_run_is_never_worse_than_its_warm_head(tmp_path: Path) -> None:
    """Steps that ruin the model leave the one from before the first step."""
    ruined = train(tiny_network(), tmp_path / "run", supervised(learning_rate=10.0, max_steps=6))
    lines = ruined.metrics()
    before = next(line["before_training"]["macro"] for line in lines if "before_training" in line)
    assert any(line.get("head_warm_up", {}).get("nodes", 0) > 0 for line in lines)
    assert all(line["validation"]["macro"] <= before for line in lines if "validation" in line)
    untouched = train(tiny_network(), tmp_path / "untouched", supervised(max_steps=0)).model().state_dict()
    for name, value in ruined.model().state_dict().items():
        assert torch.equal(value, untouched[name]), name


def test_it_can_be_left_out(tmp_path: Path) -> None:
    assert LABELS.head_warm_up
    run = train(tiny_network(), tmp_path / "run", supervised(max_steps=2, evaluate_every=1, labels=WITHOUT))
    assert not any("head_warm_up" in line for line in Run(run.path).metrics())
    steps = [line["step"] for line in run.metrics() if "validation" in line]
    assert steps == [1, 2]
    assert "at step 0" not in (run.path / "README.md").read_text()
