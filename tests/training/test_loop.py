from __future__ import annotations

import itertools
import json
import os
import random
import re
import signal
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModel

from heterformer import progress
from heterformer.batches.batcher import Batcher
from heterformer.batches.pairs import evaluation_sampler
from heterformer.batches.visible import VisibleNetwork
from heterformer.cli import main as cli
from heterformer.errors import InputError
from heterformer.evaluation.open_run import open_run
from heterformer.models import Heterformer
from heterformer.models.inference import center_vectors
from heterformer.network.split.draw import make_split
from heterformer.network.split.options import SplitOptions
from heterformer.training import loop
from heterformer.training import train as train_module
from heterformer.training.optimizers import Optimizers
from heterformer.training.run import Run
from heterformer.training.supervision_options import SupervisionOptions
from heterformer.training.train import train
from tests.learning import (
    start_process,
    tiny_model,
    tiny_network,
    tiny_options,
    tiny_reader,
    tiny_tokens,
    wait_for_lines,
)
from tests.networks import files
from tests.training.runs import (
    LAST,
    MANY,
    STEPS,
    Killed,
    assert_same_run,
    differ,
    dying_at_rename,
    options,
    tensors,
    train_at,
    trained,
    waiting_at,
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run that nothing has disturbed."""
    return trained(tmp_path_factory.mktemp("whole") / "run")


def validations(run: Run) -> dict[int, float]:
    return {line["step"]: line["validation"]["prec"] for line in run.metrics() if "validation" in line}


# --- What a run does and leaves ---------------------------------------------------------------------------


def test_every_step_is_in_the_metrics(whole: Run) -> None:
    losses = {line["step"]: line["loss"] for line in whole.metrics() if "loss" in line}
    assert list(losses) == list(range(1, STEPS + 1))
    assert all(np.isfinite(list(losses.values())))
    warmed = [line["warm_up"]["node_type"] for line in whole.metrics() if "warm_up" in line]
    assert warmed == ["author", "venue"]


def test_validates_before_the_first_step(whole: Run) -> None:
    lines = [line for line in whole.metrics() if "before_training" in line]
    assert [line["step"] for line in lines] == [0]
    assert lines[0]["before_training"].keys() == whole.metrics()[-1]["validation"].keys()
    assert whole.progress()[1].best_step > 0


def test_no_step_leaves_the_model_as_it_starts(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", max_steps=0, model="bert")
    assert run.is_complete
    (before,) = [line["before_training"] for line in run.metrics() if "before_training" in line]
    assert validations(run) == {0: before["prec"]}
    backbone = AutoModel.from_pretrained(tiny_reader()).state_dict()
    weights = {name.removeprefix("backbone."): value for name, value in run.model().state_dict().items()}
    shared = backbone.keys() & weights.keys()
    assert len(shared) > 20
    assert all(torch.equal(weights[name], backbone[name]) for name in shared)
    assert max(validations(trained(run.path, max_steps=2, model="bert"))) == 2  # and goes on from there


def test_no_stage_is_without_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[str] = []

    def metrics(*_: object, **__: object) -> dict[str, float]:
        names.append(progress._stages[-1].description)
        return {"prec": 0.5, "mrr": 0.5, "ndcg": 0.5}

    monkeypatch.setattr(loop, "in_batch_metrics", metrics)
    trained(tmp_path / "run", max_steps=2, evaluate_every=1, average_last=2)
    before, once, mean = "validating before the first step", "validating", "validating the mean of weights"
    assert names == [before, once, once, mean]


@pytest.mark.parametrize(
    "more",
    [
        {},
        {
            "tasks": ("link_prediction", "classification"),
            "labels": SupervisionOptions(type="paper", min_members=5),
        },
    ],
)
def test_validation_says_how_far_it_is(
    more: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each validation moves from nothing to all of its nodes, in more than one move."""
    moves: dict[int, list[float]] = {}
    stages: dict[int, progress.Stage] = {}
    advance = progress.Bar.advance

    def noted(self: progress.Bar, amount: float = 1) -> None:
        if self._stage.description.startswith("validating"):
            stages[id(self)] = self._stage
            moves.setdefault(id(self), []).append(amount)
        kept.append(self)
        advance(self, amount)

    kept: list[progress.Bar] = []  # so that no id is used twice
    monkeypatch.setattr(progress.Bar, "advance", noted)
    trained(tmp_path / "run", max_steps=2, evaluate_every=1, average_last=2, **more)
    names = [stage.description for stage in stages.values()]
    before, once, mean = "validating before the first step", "validating", "validating the mean of weights"
    assert names == [before, once, once, mean]
    for number, stage in stages.items():
        assert stage.total == pytest.approx(sum(moves[number]))
        assert len([amount for amount in moves[number] if amount]) > 1
        assert stage.unit == "nodes"
        stage.completed /= 2
        assert re.search(r": 50%, .* nodes/s, .* left$", stage.line(stage.started + 1.0))


def test_validates_once_an_epoch_and_at_the_end(whole: Run) -> None:
    pairs = len(whole.split(tiny_network()).train)
    epoch = pairs // 16 + (pairs % 16 > 1)
    assert list(validations(whole)) == [*range(epoch, STEPS, epoch), STEPS]


def test_validates_every_so_many_steps(tmp_path: Path) -> None:
    assert list(validations(trained(tmp_path / "run", max_steps=5, evaluate_every=2))) == [2, 4, 5]


def test_the_model_is_the_best_one(whole: Run) -> None:
    best = load_file(whole.best / "model.safetensors")
    found = Heterformer.from_pretrained(whole.path).state_dict()
    assert found.keys() == best.keys()
    assert all(torch.equal(found[name], best[name]) for name in best)


def test_a_saved_model_gives_the_very_same_vectors(whole: Run) -> None:
    trained_model = open_run(whole.path).model
    loaded = Heterformer.from_pretrained(whole.path)
    split = whole.split(tiny_network())
    batcher = Batcher(VisibleNetwork.for_evaluation(tiny_network(), split), tiny_tokens())
    rows, sampler = np.arange(tiny_network().schema.counts["paper"]), evaluation_sampler(0)
    vectors = [center_vectors(m, batcher, "paper", rows, sampler) for m in (trained_model, loaded)]
    assert torch.equal(*vectors)
    authors = torch.arange(tiny_network().schema.counts["author"])
    assert torch.equal(*(m.textless_vectors("author", authors) for m in (trained_model, loaded)))
    assert not torch.equal(vectors[0], center_vectors(tiny_model(), batcher, "paper", rows, sampler))


def test_the_run_says_what_it_was_asked(whole: Run) -> None:
    assert whole.options() == options().resolved()
    assert whole.network().fingerprint == tiny_network().fingerprint


def test_the_same_seed_gives_the_same_run(whole: Run, tmp_path: Path) -> None:
    assert_same_run(trained(tmp_path / "again"), whole)
    assert differ(trained(tmp_path / "other", seed=1), whole)


def test_validation_does_not_disturb_training(tmp_path: Path) -> None:
    often = trained(tmp_path / "often", evaluate_every=1, max_steps=6)
    never = trained(tmp_path / "never", evaluate_every=1000, max_steps=6)
    assert len(validations(often)) == 6
    assert len(validations(never)) == 1
    assert not differ(often, never)
    assert not differ(often, never, LAST[1])


@pytest.mark.parametrize("virtual_tokens", ["none", "text_rich"])
def test_without_textless_neighbours_there_is_no_warm_up(tmp_path: Path, virtual_tokens: str) -> None:
    run = trained(tmp_path / "run", virtual_tokens=virtual_tokens, max_steps=1)
    assert not any("warm_up" in line for line in run.metrics())


def test_the_gradient_is_clipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    norms: dict[float | None, list[float]] = {}
    step = Optimizers.step

    def recorded(self: Optimizers, factor: float) -> None:
        gradients = [p.grad.norm() for p in self.dense_parameters if p.grad is not None]
        norms[limit].append(torch.stack(gradients).norm().item())
        step(self, factor)

    monkeypatch.setattr(Optimizers, "step", recorded)
    for limit in (None, 1e-3):
        norms[limit] = []
        trained(tmp_path / f"{limit}", max_grad_norm=limit, max_steps=3)
    assert min(norms[None]) > 1e-2
    assert norms[1e-3] == pytest.approx([1e-3] * 3, rel=1e-2)


def test_false_negatives_are_masked_by_default_and_kept_on_request(tmp_path: Path) -> None:
    mask, keep = (trained(tmp_path / v, false_negatives=v, max_steps=9) for v in ("mask", "keep"))
    first = [next(line["loss"] for line in run.metrics() if "loss" in line) for run in (mask, keep)]
    assert first[0] < first[1]  # fewer terms in the denominator


def test_fresh_positives_are_the_same_ones_after_a_stop(whole: Run, tmp_path: Path) -> None:
    assert whole.options().positives == "fresh"
    assert differ(trained(tmp_path / "fixed", positives="fixed"), whole)
    for steps in (9, 13, STEPS):  # in the second epoch and in the third
        run = trained(tmp_path / "stopped", max_steps=steps)
    assert not differ(run, whole)
    assert not differ(run, whole, LAST[1])


def test_trains_in_mixed_precision(whole: Run, tmp_path: Path) -> None:
    """In the process that trained ``whole`` without: precision is a training's own."""
    run = trained(tmp_path / "run", precision="bf16", max_steps=9)
    assert {tensor.dtype for tensor in tensors(run, *LAST).values()} == {torch.float32, torch.int64}
    losses, expected = ([m["loss"] for m in r.metrics() if "loss" in m][:9] for r in (run, whole))
    # Padding changes what dropout draws, so that single steps differ.
    assert sum(losses) == pytest.approx(sum(expected), rel=0.03)
    assert losses == pytest.approx(expected, rel=0.25)
    assert losses != expected


def test_a_short_last_batch_and_many_epochs(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", batch_size=100, epochs=3, max_steps=None)
    assert [line["epoch"] for line in run.metrics() if "loss" in line] == [0, 1, 1, 2, 2, 3]
    assert "all 3 epochs are done" in (run.path / "README.md").read_text()


# --- Budgets ----------------------------------------------------------------------------------------------


def test_more_steps_go_on_as_if_they_had_been_asked_at_once(whole: Run, tmp_path: Path) -> None:
    for steps in (7, 8, STEPS):
        run = trained(tmp_path / "run", max_steps=steps)
        assert run.metrics()[-1]["step"] == steps
    assert not differ(run, whole)
    assert not differ(run, whole, LAST[1])
    losses = [[line for line in r.metrics() if "loss" in line] for r in (run, whole)]
    assert losses[0] == losses[1]
    assert run.options().max_steps == STEPS


def test_a_finished_run_has_nothing_to_do(
    whole: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = trained(tmp_path / "run", max_steps=2)
    before = {path: path.stat().st_mtime_ns for path in run.path.rglob("*") if path.suffix == ".safetensors"}
    metrics = run.metrics()
    capsys.readouterr()
    trained(run.path, max_steps=2)
    said = " ".join(capsys.readouterr().err.split())
    assert said.endswith("the limit of 2 steps is reached at step 2; nothing to do.")
    assert run.metrics() == metrics
    assert {path: path.stat().st_mtime_ns for path in before} == before


class Clock(SimpleNamespace):
    """Every look at it takes a second."""

    def __init__(self) -> None:
        seconds = itertools.count()
        super().__init__(monotonic=lambda: float(next(seconds)))


def test_stops_when_the_minutes_are_over_and_goes_on_with_more(
    whole: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "time", Clock())
    steps = []
    for minutes in (0.2, 0.4, MANY):
        run = trained(tmp_path / "run", max_minutes=minutes)
        steps.append(run.metrics()[-1]["step"])
        state = json.loads((run.last / "state.json").read_text())
        spent = state["position"]["seconds_before"] + state["position"]["seconds"]
        assert state["position"]["seconds_before"] > 0
        assert minutes == MANY or 60 * minutes <= spent < 60 * minutes + 4
    assert 0 < steps[0] < steps[1] < steps[2] == STEPS
    assert steps[1] - steps[0] <= steps[0]  # the minutes of the first time count
    assert not differ(run, whole)


def test_saves_every_so_many_minutes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved: list[int] = []
    save = Run.save_checkpoint

    def recorded(run: Run, model: Any, optimizers: Any, position: Any, *rest: Any) -> None:
        saved.append(position.step)
        save(run, model, optimizers, position, *rest)

    monkeypatch.setattr(Run, "save_checkpoint", recorded)
    for minutes in (0.0, MANY):
        saved.clear()
        trained(tmp_path / str(minutes), checkpoint_minutes=minutes, max_steps=4)
        assert sorted(set(saved)) == ([0, 1, 2, 3, 4] if minutes == 0 else [0, 4])


def test_stops_when_patience_is_used_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    still = {"learning_rate": 1e-30, "new_learning_rate": 1e-30, "textless_learning_rate": 1e-30}
    run = trained(tmp_path / "run", evaluate_every=2, patience=3, max_steps=None, weight_decay=0.0, **still)
    assert list(validations(run)) == [2, 4, 6, 8]  # the first is the best, three are no better
    assert "no better validation PREC in 3 evaluations" in (run.path / "README.md").read_text()
    assert " at step 2" in " ".join(capsys.readouterr().err.split())


# --- Kills ------------------------------------------------------------------------------------------------


def test_a_killed_run_ends_as_if_nobody_had_killed_it(whole: Run, tmp_path: Path) -> None:
    path = tmp_path / "run"
    generator = random.Random(1)
    steps = sorted(generator.sample(range(1, STEPS - 2), 3))
    for step, minutes in zip(steps, (0.0, MANY, 0.0), strict=True):  # checkpoints at every step, or seldom
        asked = options(checkpoint_minutes=minutes)
        job = (train_at, tiny_network().path, path, asked)
        lines = 2 + step  # two are of the warm-up
        process = start_process(tmp_path / "log", waiting_at, lines, tmp_path / "never", *job)
        wait_for_lines(path / "metrics.jsonl", lines, process)
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL
    assert not (path / "README.md").exists()
    assert_same_run(trained(path), whole)


def test_a_run_that_dies_at_one_rename_after_the_other(tmp_path: Path) -> None:
    """The n-th attempt dies at its n-th rename or replacement of a file, wherever that is."""
    changes = {"max_steps": 4, "evaluate_every": 3, "checkpoint_minutes": 0.0}
    for attempt in itertools.count(1):
        with pytest.MonkeyPatch.context() as patched:
            dying = dying_at_rename(attempt, os.rename)
            patched.setattr(os, "rename", dying)
            patched.setattr(os, "replace", dying)
            try:
                run = trained(tmp_path / "run", **changes)
                break
            except Killed:
                assert attempt < 60
    assert attempt > 8
    assert_same_run(run, trained(tmp_path / "whole" / "run", **changes))
    assert (run.path / "README.md").read_text() == (tmp_path / "whole" / "run" / "README.md").read_text()


def test_a_run_killed_while_its_model_is_written_writes_it_the_next_time(
    whole: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: Any) -> None:
        raise Killed

    for writer in ("save_pretrained", "write_model_card"):
        with monkeypatch.context() as patched:
            patched.setattr(Heterformer if writer == "save_pretrained" else train_module, writer, killed)
            with pytest.raises(Killed):
                trained(tmp_path / "run")
    run = trained(tmp_path / "run")
    assert_same_run(run, whole)
    assert (run.path / "README.md").read_text() == (whole.path / "README.md").read_text()


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_saves_and_says_how_to_go_on(whole: Run, tmp_path: Path, signal_number: int) -> None:
    path, log = tmp_path / "run", tmp_path / "log"
    flags = {"max_steps": STEPS, "backbone": tiny_reader(), "checkpoint_minutes": MANY, **FLAGS}
    words = [word for name, value in flags.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    arguments = ["train", str(tiny_network().path), str(path), *words]
    process = start_process(log, waiting_at, 5, tmp_path / "interrupted", cli.main, arguments)
    wait_for_lines(path / "metrics.jsonl", 5, process)
    os.kill(process.pid, signal_number)
    (tmp_path / "interrupted").touch()
    process.join()
    said = " ".join(log.read_text().split())
    step = Run(path).metrics()[-1]["step"]
    assert process.exitcode == 130
    assert f"saved at step {step}; the same command resumes. interrupted" in said
    assert "Traceback" not in said
    assert json.loads((Run(path).last / "state.json").read_text())["position"]["step"] == step
    cli.main(arguments)
    assert_same_run(Run(path), whole)


FLAGS = {
    "neighbor_states": "live",
    "neighbor_pooling": "cls",
    "readout": "cls",
    "normalize": "no",
    "temperature": 1.0,
    "textless_dim": 8,
    "neighbor_dropout": 0.0,
    "warm_up_epochs": 2,
    "warm_up_batch_size": 128,
    "batch_size": 16,
    "learning_rate": 1e-3,
    "new_learning_rate": 1e-3,
    "textless_learning_rate": 1e-2,
    "device": "cpu",
    "patience": int(MANY),
}


def test_a_single_training_pair_is_refused(tmp_path: Path) -> None:
    """It would have no negatives, and an epoch no step: training would never end."""
    split = make_split(tiny_network())
    single = {name: replace(parts, train=parts.train[:1]) for name, parts in split.pairs.items()}
    replace(split, pairs=single).save(tmp_path / "split.parquet", tiny_network())
    options = tiny_options(tiny_reader(), split=SplitOptions(file=str(tmp_path / "split.parquet")))
    with pytest.raises(InputError, match="there is 1 training pair, whose key"):
        train(tiny_network(), tmp_path / "new" / "run", options)
    assert files(tmp_path) == {"split.parquet"}  # neither the run nor the folders above it
