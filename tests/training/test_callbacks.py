"""The callback of ``train``: what it is told, and how it stops a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from heterformer.training.callbacks import TrainingProgress
from heterformer.training.run import Run
from heterformer.training.train import train
from tests.learning import tiny_network
from tests.training.runs import assert_same_run, options, trained


def test_a_callback_sees_every_step_and_every_validation(tmp_path: Path) -> None:
    seen: list[TrainingProgress] = []
    run = train(
        tiny_network(), tmp_path / "run", options(max_steps=7, evaluate_every=3), callback=seen.append
    )
    assert [progress.step for progress in seen] == [1, 2, 3, 4, 5, 6, 7, 7]
    lines = run.metrics()
    assert [p.loss for p in seen[:7]] == [line["loss"] for line in lines if "loss" in line]
    validated = {p.step: p.validation for p in seen if p.validation is not None}
    logged = {line["step"]: line["validation"]["mrr"] for line in lines if "validation" in line}
    assert {step: figures["mrr"] for step, figures in validated.items()} == logged
    assert list(logged) == [3, 6, 7]
    best = [p.step for p in seen if p.is_best]
    assert best[0] == 3
    assert best[-1] == run.progress()[1].best_step
    assert seen[-1].seconds >= seen[0].seconds > 0


def test_watching_changes_nothing(tmp_path: Path) -> None:
    watched = train(tiny_network(), tmp_path / "watched", options(max_steps=4), callback=lambda _: None)
    assert_same_run(watched, trained(tmp_path / "alone", max_steps=4))


def test_a_callback_that_returns_true_stops_training(tmp_path: Path) -> None:
    run = train(tiny_network(), tmp_path / "run", options(max_steps=9), callback=lambda p: p.step == 4)
    assert run.is_complete
    assert run.progress()[0].step == 4
    assert "validation" in run.metrics()[-1]
    assert "the callback stopped it" in (run.path / "README.md").read_text()


def test_a_run_that_a_callback_stopped_resumes(tmp_path: Path) -> None:
    """The last step's validation apart, to the very run that nobody stopped."""
    train(
        tiny_network(),
        tmp_path / "run",
        options(max_steps=9, evaluate_every=2),
        callback=lambda p: p.step == 4,
    )
    resumed = train(tiny_network(), tmp_path / "run", options(max_steps=9, evaluate_every=2))
    assert_same_run(resumed, trained(tmp_path / "whole", max_steps=9, evaluate_every=2))


def test_an_error_in_a_callback_leaves_a_run_that_resumes(tmp_path: Path) -> None:
    def fail(progress: TrainingProgress) -> None:
        if progress.step == 3:
            raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        train(tiny_network(), tmp_path / "run", options(max_steps=5), callback=fail)
    assert not Run(tmp_path / "run").is_complete
    resumed = train(tiny_network(), tmp_path / "run", options(max_steps=5))
    assert_same_run(resumed, trained(tmp_path / "whole", max_steps=5))


def test_a_network_may_be_given_by_its_folder(tmp_path: Path) -> None:
    run = train(str(tiny_network().path), tmp_path / "run", options(max_steps=2))
    assert run.network().fingerprint == tiny_network().fingerprint
