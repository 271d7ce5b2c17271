"""What is said before the first run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from heterformer.comparison.budget import say_budget
from heterformer.comparison.job import Job
from heterformer.comparison.variants import VARIANTS
from heterformer.errors import InputError
from heterformer.network.split.draw import make_split
from heterformer.network.store import Network
from heterformer.training.options import TrainingOptions
from tests.learning import tiny_network, tiny_options, tiny_reader

WHEN = "validation and warm-up not counted."


def said(
    capsys: pytest.CaptureFixture[str], models: list[str], speed: Any, **changes: int | None
) -> list[str]:
    network = tiny_network()
    options = replace(tiny_options(tiny_reader(), epochs=7, batch_size=8, max_steps=None), **changes)
    jobs = [Job(Path("out"), network.path, VARIANTS[name], 0, options) for name in models]
    say_budget(network, options, jobs, 0, speed)
    return capsys.readouterr().err.splitlines()


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(3, "1 minute"), (700, "12 minutes"), (7_100, "118 minutes"), (7_200, "2 hours"), (1e7, "2,778 hours")],
)
def test_the_time_of_all_runs_is_estimated(
    capsys: pytest.CaptureFixture[str], seconds: float, told: str
) -> None:
    pairs = 2 * 7 * len(make_split(tiny_network(), tiny_options(tiny_reader()).split).train)
    first, second = said(capsys, ["bert", "heterformer"], lambda *_: pairs / seconds)
    assert first.startswith("2 runs, one after the other, each until early stopping, at most 7 epochs of 17")
    assert second == f"Estimate by a few timed steps of Heterformer: at most about {told} in all, {WHEN}"


def test_without_heterformer_the_first_model_is_timed(capsys: pytest.CaptureFixture[str]) -> None:
    timed = []

    def speed(_: Network, options: TrainingOptions) -> float:
        timed.append(options.model.name)
        return 1e9

    _, second = said(capsys, ["bert", "bert_gat"], speed)
    assert timed == ["bert"]
    assert "steps of BERT: at most about 1 minute in all" in second


def test_with_a_budget_nothing_is_timed(capsys: pytest.CaptureFixture[str]) -> None:
    def never(*_: Any) -> float:
        raise AssertionError("timed")

    assert said(capsys, ["bert"], never, max_steps=9) == [
        "1 run of 9 steps each, less than an epoch (17 steps)."
    ]
    assert said(capsys, ["bert"], never, max_minutes=3) == []
    assert said(capsys, [], never) == []


def test_steps_that_cannot_be_timed_are_left_to_the_runs(capsys: pytest.CaptureFixture[str]) -> None:
    def broken(*_: Any) -> float:
        raise InputError("no such backbone")

    assert len(said(capsys, ["bert"], broken)) == 1
