"""The mean of evaluated weights: what it is, when it is kept, and that a kill changes nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from heterformer.models.contract import NodeEncoder
from heterformer.training import loop
from heterformer.training.averaging import WeightAverage
from heterformer.training.run import Run
from tests.learning import tiny_model
from tests.training.runs import Killed, assert_same_run, differ, dying_at_rename, trained

AVERAGED: dict[str, Any] = {"average_last": 3, "evaluate_every": 2, "max_steps": 10}
AVERAGE = "checkpoints/last/average.safetensors"


def test_the_mean_of_the_last_weights() -> None:
    models = [tiny_model(seed) for seed in range(5)]
    average, expected = WeightAverage(3), dict[str, Tensor]()
    for number, model in enumerate(models, 1):
        average = average.including(model)
        share = 1 / min(number, 3)
        for name, value in model.state_dict().items():
            expected[name] = expected[name] * (1 - share) + value * share if number > 1 else value
        if number == 3:
            for name, value in average.weights.items():
                plain = sum(m.state_dict()[name] for m in models[:3]) / 3
                torch.testing.assert_close(value, plain)
    assert average.count == 5
    assert "textless.tables.0.weight" in average.weights
    for name, value in expected.items():
        torch.testing.assert_close(average.weights[name], value)


def test_the_model_has_its_own_weights_again() -> None:
    model, other = tiny_model(0), tiny_model(1)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    average = WeightAverage(2).including(other)
    with average.in_place(model):
        assert all(torch.equal(value, other.state_dict()[n]) for n, value in model.state_dict().items())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    restored = WeightAverage(2).restored(average.tensors())
    assert restored.count == 1
    assert restored.weights.keys() == average.weights.keys()


def test_training_itself_is_not_changed(tmp_path: Path) -> None:
    averaged, plain = (
        trained(tmp_path / "a", **AVERAGED),
        trained(tmp_path / "b", evaluate_every=2, max_steps=10),
    )
    assert not differ(averaged, plain)
    lines = [line for line in averaged.metrics() if "validation" in line]
    assert ["average" in line for line in lines] == [False, True, True, True, True]


@pytest.mark.parametrize("better", [True, False])
def test_the_mean_is_kept_if_it_is_better(
    better: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Figures are faked: those of means are above, or below, all others."""
    validated: list[dict[str, Tensor]] = []

    def faked(model: NodeEncoder, *_: Any) -> dict[str, float]:
        validated.append({name: value.clone() for name, value in model.state_dict().items()})
        is_mean = len(validated) % 2 == 0 and len(validated) > 2
        return {"prec": len(validated) / 100 + (0.5 if better else -0.5) * is_mean, "mrr": 0.0}

    monkeypatch.setattr(loop, "in_batch_metrics", faked)
    run = trained(tmp_path / "run", average_last=2, evaluate_every=1, max_steps=3)
    assert len(validated) == 6  # before training, and of the first evaluation, there is no mean yet
    _, first, second, mean, third, last_mean = validated
    for name, value in mean.items():
        torch.testing.assert_close(value, (first[name] + second[name]) / 2)
        torch.testing.assert_close(last_mean[name], (value + third[name]) / 2)
    best = load_file(run.path / "model.safetensors")
    expected = last_mean if better else third
    assert all(torch.equal(best[name], value) for name, value in expected.items())


def test_a_better_mean_restores_the_patience(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figures = iter([0.9, 0.5, 0.4, 0.6, 0.4, 0.3, 0.4, 0.3])  # the first does not count

    def faked(*_: Any) -> dict[str, float]:
        return {"prec": next(figures), "mrr": 0.0}

    monkeypatch.setattr(loop, "in_batch_metrics", faked)
    run = trained(tmp_path / "run", average_last=2, evaluate_every=1, max_steps=9, patience=2)
    position, early = run.progress()
    assert (position.step, early.best, early.best_step) == (4, 0.6, 2)


def test_a_killed_run_resumes_to_the_same_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = trained(tmp_path / "whole", **AVERAGED)
    with monkeypatch.context() as patched:
        patched.setattr(os, "rename", dying_at_rename(12, os.rename))
        patched.setattr(os, "replace", dying_at_rename(12, os.replace))
        with pytest.raises(Killed):
            trained(tmp_path / "killed", **AVERAGED)
    assert Run(tmp_path / "killed").started
    killed = trained(tmp_path / "killed", **AVERAGED)
    assert_same_run(killed, whole)
    assert not differ(killed, whole, AVERAGE)


def test_the_end_of_a_budget_is_no_evaluation_of_the_mean(tmp_path: Path) -> None:
    whole = trained(tmp_path / "whole", **AVERAGED)
    trained(tmp_path / "parts", **AVERAGED | {"max_steps": 5})
    parts = trained(tmp_path / "parts", **AVERAGED)
    assert not differ(parts, whole, AVERAGE)
