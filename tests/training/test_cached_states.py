"""Training on stored neighbour states: the step itself, when states are computed anew, stops and kills."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from heterformer.arrays import Ints
from heterformer.batches.batch import Batch, Texts
from heterformer.batches.batcher import Batcher
from heterformer.batches.pairs import TrainingBatches
from heterformer.batches.randomness import stream_key
from heterformer.batches.visible import VisibleNetwork
from heterformer.errors import InputError
from heterformer.evaluation.open_run import open_run
from heterformer.models import Heterformer
from heterformer.models.inference import each_text, evaluating, neighbor_text_rows
from heterformer.network.split.split import Split
from heterformer.states.pass_vectors import PassVectors
from heterformer.states.store import StateStore
from heterformer.training import cached_states, loop
from heterformer.training.cached_states import CachedStates, refresh_interval
from heterformer.training.learner import DROPOUT
from heterformer.training.loop import Trainer
from heterformer.training.losses import link_prediction_loss
from heterformer.training.optimizers import Optimizers
from heterformer.training.run import Run
from heterformer.training.validation import in_batch_metrics
from heterformer.training.warm_up_options import WarmUpOptions
from tests.learning import start_process, tiny_network, tiny_tokens, wait_for_lines
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
    train_at,
    trained,
    waiting_at,
)

EVERY = 6  # refreshes at 0, 6, 12 and 18
CACHED: dict[str, Any] = {"neighbor_states": "cached", "refresh_every": EVERY}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A cached run that nothing has disturbed."""
    return trained(tmp_path_factory.mktemp("whole") / "run", **CACHED)


def new_trainer(path: Path, **changes: Any) -> Trainer:
    asked = options(**CACHED | changes)
    run = Run(path)
    run.start(tiny_network(), asked)
    return Trainer(tiny_network(), run, asked)


def refreshes(run: Run) -> dict[int, int]:
    """The step of each refresh and the number of texts that it read."""
    return {line["step"]: line["refresh"]["texts"] for line in run.metrics() if "refresh" in line}


def batches_of(split: Split, seed: int = 0) -> TrainingBatches:
    visible = VisibleNetwork.for_training(tiny_network(), split)
    return TrainingBatches(Batcher(visible, tiny_tokens(), second_hop=10), split.train, 16, seed)


# --- Before the first step --------------------------------------------------------------------------------


def test_validation_before_the_first_step_reads_no_text_of_the_first_refresh(
    tmp_path: Path, whole: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = list[StateStore | None]()

    class Forgetful(PassVectors):
        def __init__(self, *arguments: Any, stored: StateStore | None = None) -> None:
            given.append(stored)
            super().__init__(*arguments)

    monkeypatch.setattr(loop, "PassVectors", Forgetful)
    reading = trained(tmp_path / "run", **CACHED)
    assert given[0] is not None
    assert set(given[1:]) == {None}  # of later weights nothing is stored
    shared, read = (
        next(line["before_training"] for line in run.metrics() if "before_training" in line)
        for run in (whole, reading)
    )
    assert shared == pytest.approx(read)


def test_states_of_a_run_that_never_began_are_not_used(tmp_path: Path, whole: Run) -> None:
    trainer = new_trainer(tmp_path / "run")
    assert trainer.cached is not None
    torch.nn.init.zeros_(trainer.model.backbone.embeddings.word_embeddings.weight)
    list(trainer.cached.refresh(0, STEPS))
    assert_same_run(trained(tmp_path / "run", **CACHED), whole)


# --- A step -----------------------------------------------------------------------------------------------


def gradients(model: torch.nn.Module) -> dict[str, Tensor]:
    return {n: p.grad.to_dense().clone() for n, p in model.named_parameters() if p.grad is not None}


def test_a_cached_step_is_a_live_one_on_states_that_have_no_gradient(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = new_trainer(tmp_path / "run")
    model, batch = trainer.model, trainer.batches.batch(0, 0)
    with evaluating(model):
        states = model.text_states(batch.texts.first(batch.neighbor_texts))
    model.train()
    torch.manual_seed(int(stream_key(DROPOUT, 0, 0) >> np.uint64(1)))
    queries, keys, _ = batch.by_role(model(batch, states))
    expected_loss = link_prediction_loss(model.scores(queries, keys), batch.false_negatives)
    expected_loss.backward()
    expected = gradients(model)
    trainer.optimizers.zero_grad()

    assert trainer.cached is not None
    list(trainer.cached.refresh(0, STEPS))
    found: dict[str, Tensor] = {}
    monkeypatch.setattr(Optimizers, "step", lambda self, factor: found.update(gradients(model)))
    loss = trainer._step(trainer.slice_batch(batch))
    assert loss == pytest.approx(expected_loss.item(), rel=1e-6)
    assert found.keys() == expected.keys()
    assert any(name.startswith("edge_projections") for name in found)
    for name, gradient in expected.items():
        atol = 1e-6 * float(gradient.abs().max()) + 1e-8
        torch.testing.assert_close(found[name], gradient, rtol=1e-6, atol=atol)


def test_a_cached_step_reads_no_neighbours_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = new_trainer(tmp_path / "run")
    assert trainer.cached is not None
    list(trainer.cached.refresh(0, STEPS))
    given: list[tuple[Batch, Tensor]] = []
    forward = Heterformer.forward

    def recorded(self: Heterformer, batch: Batch, states: Tensor) -> Tensor:
        given.append((batch, states))
        return forward(self, batch, states)

    def unwanted(self: Heterformer, texts: Texts) -> Tensor:
        raise AssertionError("a neighbour's text was read")

    monkeypatch.setattr(Heterformer, "forward", recorded)
    monkeypatch.setattr(Heterformer, "text_states", unwanted)
    asked = trainer.batches.batch(0, 3)
    trainer._step(trainer.slice_batch(asked))
    ((batch, states),) = given
    centers = batch.centers.unique()
    assert len(batch.texts.tokens) == int(asked.texts.lengths[centers].sum()) < len(asked.texts.tokens)
    assert len(states) == asked.neighbor_texts
    assert not states.requires_grad
    assert states.dtype == torch.float32


def test_of_neighbours_neighbours_only_the_final_vectors_are_read(tmp_path: Path) -> None:
    trainer = new_trainer(tmp_path / "run")
    assert trainer.cached is not None
    list(trainer.cached.refresh(0, STEPS))
    assert trainer.cached.store is not None
    batch = trainer.batches.batch(0, 0)
    near = sorted({int(i) for r, n in batch.neighbors.items() if r.neighbor == "paper" for i in n.node})
    far = sorted(set(range(batch.neighbor_texts)) - set(near))
    assert near
    assert far
    states = trainer.cached.for_batch(batch)
    stored = torch.from_numpy(trainer.cached.store.read(neighbor_text_rows(batch)))
    assert torch.equal(states[near], stored[near])
    assert torch.equal(states[far, -1], stored[far, -1])
    assert not states[far, :-1].any()
    everything = trainer.cached.for_batch(replace(batch, second_hop={}, neighbors=batch.second_hop))
    assert torch.equal(everything[far], stored[far])  # as neighbours of centres they are read whole


def test_a_cached_step_in_mixed_precision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    losses = []
    for precise in (True, False):
        # Scores between -10 and 10, or else a rounding error in one of them is a large part of the loss.
        trainer = new_trainer(tmp_path / f"{precise}", normalize="yes", temperature=0.1)
        if not precise:
            half = torch.autocast("cpu", torch.bfloat16)
            monkeypatch.setattr(trainer, "autocast", lambda half=half: half)
        assert trainer.cached is not None
        list(trainer.cached.refresh(0, STEPS))
        losses.append(trainer._step(trainer.slice_batch(trainer.batches.batch(0, 0))))
    assert losses[0] == pytest.approx(losses[1], rel=0.05)
    assert losses[0] != losses[1]


def test_a_cached_run_is_not_a_live_one(whole: Run, tmp_path: Path) -> None:
    live = trained(tmp_path / "live", second_hop=10)
    assert differ(whole, live)
    losses = [[line["loss"] for line in run.metrics() if "loss" in line] for run in (whole, live)]
    assert losses[0] == pytest.approx(losses[1], rel=0.5)  # those of single steps
    assert sum(losses[0]) == pytest.approx(sum(losses[1]), rel=0.2)


@pytest.mark.parametrize("virtual_tokens", ["none", "textless"])
def test_a_model_that_takes_no_states_is_trained_as_ever(tmp_path: Path, virtual_tokens: str) -> None:
    asked = {"virtual_tokens": virtual_tokens, "max_steps": 4}
    cached, live = trained(tmp_path / "cached", **CACHED, **asked), trained(tmp_path / "live", **asked)
    assert_same_run(cached, live)
    assert refreshes(cached) == {}
    assert not cached.states.exists()


def test_validation_reads_every_text_itself(whole: Run) -> None:
    opened = open_run(whole.path)
    split = opened.split
    found = in_batch_metrics(opened.model, opened.batcher, split.validation, 100, 0)
    logged = [line["validation"] for line in whole.metrics() if "validation" in line]
    best = max(logged, key=lambda figures: figures["prec"])
    assert (found["prec"], found["mrr"]) == (best["prec"], best["mrr"])


# --- When states are computed anew ------------------------------------------------------------------------


@pytest.mark.parametrize(("every", "steps"), [(None, [0, 9, 18]), (4, [0, 4, 8, 12, 16]), (14, [0, 14])])
def test_a_refresh_reads_what_the_steps_until_the_next_one_meet(
    tmp_path: Path, every: int | None, steps: list[int]
) -> None:
    run = trained(tmp_path / "run", neighbor_states="cached", refresh_every=every, positives="fixed")
    batches = batches_of(run.split(tiny_network()))
    assert batches.steps_per_epoch == 9
    expected = {}
    for first, last in itertools.pairwise([*steps, STEPS]):
        met = [neighbor_text_rows(batches.batch(*divmod(step, 9))) for step in range(first, last)]
        needed = np.unique(np.concatenate(met))
        if last - first > 9:  # more than an epoch is not looked through
            every_neighbor = batches.batcher.neighbor_texts()
            assert np.isin(needed, every_neighbor).all()
            needed = every_neighbor
        expected[first] = len(needed)
    assert refreshes(run) == expected
    assert all(line["refresh"]["seconds"] >= 0 for line in run.metrics() if "refresh" in line)


@pytest.mark.parametrize(("texts", "centers", "steps"), [(90, 60, 2), (91, 60, 3), (9, 60, 1), (0, 4, 1)])
def test_a_refresh_costs_a_share_of_its_steps(texts: int, centers: int, steps: int) -> None:
    assert refresh_interval(texts, centers, 0.25) == steps


def test_how_often_states_are_computed_anew_is_chosen_by_counting(tmp_path: Path) -> None:
    trainer = new_trainer(tmp_path / "run", refresh_every="auto", batch_size=16)
    assert trainer.cached is not None
    texts = len(trainer.batches.batcher.neighbor_texts())
    assert 150 < texts <= 200
    assert trainer.cached.every == refresh_interval(texts, 32, 0.025) > trainer.batches.steps_per_epoch


def test_mined_negatives_are_mined_anew_more_often(tmp_path: Path) -> None:
    trainer = new_trainer(tmp_path / "run", refresh_every="auto", batch_size=8, hard_negatives=1)
    assert trainer.cached is not None
    assert len(trainer.tokens) == 200
    assert trainer.cached.every == 12 < trainer.batches.steps_per_epoch  # 200 texts against 18 of a step


def test_states_are_those_of_the_last_refresh_until_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[tuple[int, Ints, NDArray[Any]]] = []
    weights: list[dict[str, Tensor]] = []
    model = new_trainer(tmp_path / "other").model
    step = Trainer._step

    def recorded(self: Trainer, *batches: Any) -> float:
        assert self.cached is not None
        assert self.cached.store is not None
        store = self.cached.store
        used.append((store.about["step"], store.text_rows.copy(), store.file.read(slice(None))))
        weights.append({name: value.clone() for name, value in self.model.state_dict().items()})
        return step(self, *batches)

    monkeypatch.setattr(Trainer, "_step", recorded)
    trained(tmp_path / "run", **CACHED, max_steps=8)
    assert [step for step, _, _ in used] == [0] * 6 + [6] * 2
    for (_, numbers, states), at in ((used[0], 0), (used[5], 0), (used[6], 6), (used[7], 6)):
        model.load_state_dict(weights[at])
        with evaluating(model):
            expected = each_text(model.text_states, tiny_tokens(), numbers, torch.device("cpu"))
            model.load_state_dict(weights[5 if at == 0 else 0])
            other = each_text(model.text_states, tiny_tokens(), numbers, torch.device("cpu"))
        assert np.allclose(states, expected, atol=1e-5)
        assert not np.allclose(states, other, atol=1e-3)


def test_states_that_a_refresh_did_not_foresee_are_not_invented(tmp_path: Path) -> None:
    trainer = new_trainer(tmp_path / "run")
    assert trainer.cached is not None
    list(trainer.cached.refresh(0, 1))
    trainer._step(trainer.slice_batch(trainer.batches.batch(0, 0)))
    with pytest.raises(KeyError, match="are not among the stored texts"):
        trainer._step(trainer.slice_batch(trainer.batches.batch(0, 1)))


def test_states_of_other_steps_do_not_serve(tmp_path: Path) -> None:
    """As after a change of the number of processes, with which the pairs of a step change."""
    trainer = new_trainer(tmp_path / "run")
    cached, batches = trainer.cached, trainer.batches
    assert cached is not None
    list(cached.refresh(0, STEPS))
    assert not cached.needs_refresh(3)
    batches.skipped = 1
    assert cached.needs_refresh(3)
    batches.skipped, batches.batch_size = 0, 2 * batches.batch_size
    assert cached.needs_refresh(3)
    assert cached.store is not None
    cached.store.about.pop("batches")  # as of an earlier version
    assert cached.needs_refresh(3)


def test_states_that_cannot_be_seen_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine that does not see the disk of the first process, or sees it late."""
    trainer = new_trainer(tmp_path / "run")
    assert trainer.cached is not None
    opened, tries = StateStore.open, itertools.count(1)
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    monkeypatch.setattr(StateStore, "open", lambda path: opened(path) if next(tries) > 20 else None)
    list(trainer.cached.refresh(0, STEPS))
    assert trainer.cached.store is not None
    assert next(tries) == 22
    monkeypatch.setattr(StateStore, "open", lambda path: None)
    with pytest.raises(InputError, match="all processes need the run folder on one disk"):
        list(trainer.cached.refresh(0, STEPS))


# --- Stops and kills --------------------------------------------------------------------------------------


def test_a_finished_run_keeps_no_states(whole: Run) -> None:
    assert list(refreshes(whole)) == [0, 6, 12, 18]
    assert not whole.states.exists()
    assert [name for name in files(whole.path) if "partial" in name] == []


def hanging_at(call: int, hung: Path, function: Callable[..., None], *arguments: Any) -> None:
    """In a process of its own: say so and wait to be killed when texts are read for the ``call``-th time."""
    calls = itertools.count(1)

    def counted(*reading: Any) -> Tensor:
        if next(calls) == call:
            hung.write_text("\n")
            time.sleep(60)
        return each_text(*reading)

    cached_states.each_text = counted  # type: ignore[attr-defined]
    function(*arguments)


def kill_reading(call: int, path: Path, minutes: float = MANY) -> None:
    """Kill a run while it reads its ``call``-th chunk; the first is the one text that tells the shape."""
    hung = path.with_name(f"hung-{time.monotonic_ns()}")
    job = (train_at, tiny_network().path, path, options(**CACHED, checkpoint_minutes=minutes))
    process = start_process(path.with_name("log"), hanging_at, call, hung, *job)
    wait_for_lines(hung, 1, process)
    process.kill()
    process.join()


def kill_at_line(lines: int, path: Path, minutes: float) -> None:
    """Kill a run as soon as its metrics have so many lines."""
    job = (train_at, tiny_network().path, path, options(**CACHED, checkpoint_minutes=minutes))
    waiting = (waiting_at, lines, path / "never", *job)
    process = start_process(path.with_name("log"), hanging_at, 0, path / "unused", *waiting)
    wait_for_lines(path / "metrics.jsonl", lines, process)
    process.kill()
    process.join()


def test_a_run_killed_before_in_and_after_a_refresh_ends_as_if_nobody_had_killed_it(
    whole: Run, tmp_path: Path
) -> None:
    path = tmp_path / "run"
    kill_at_line(3 + 1 + 5, path, minutes=0.0)  # warm-up, validation before training, a refresh, five steps
    kill_at_line(3 + 1 + 6 + 1 + 2, path, minutes=MANY)  # two steps past the refresh at 6, of which is saved
    assert Run(path).metrics()[-1]["step"] == 8
    kill_reading(4, path)  # in the refresh at 12
    assert StateStore.open(path / "states" / "last") is None
    assert files(path / "states") != set()  # half a store, in nobody's way
    kill_at_line(3 + 1 + 6 + 1 + 7 + 1 + 3, path, minutes=0.0)  # the epoch ended at 9, with a validation
    store = StateStore.open(path / "states" / "last")
    assert store is not None
    assert store.about["step"] == 12
    assert "no stored states" not in (tmp_path / "log").read_text()
    assert_same_run(trained(path, **CACHED), whole)
    assert not (path / "states").exists()


def test_a_run_that_dies_at_any_rename_of_a_file_ends_as_if_it_had_not(tmp_path: Path) -> None:
    changes = {**CACHED, "refresh_every": 2, "max_steps": 3, "warm_up": WarmUpOptions(warm_up=False)}
    undisturbed = trained(tmp_path / "whole" / "run", **changes)
    for number in itertools.count(1):
        with pytest.MonkeyPatch.context() as patched:
            dying = dying_at_rename(number, os.rename)
            patched.setattr(os, "rename", dying)
            patched.setattr(os, "replace", dying)
            try:
                trained(tmp_path / f"{number}", **changes)
                break
            except Killed:
                pass
        assert_same_run(trained(tmp_path / f"{number}", **changes), undisturbed)
    assert number > 15  # two refreshes and three checkpoints have more than that


@pytest.fixture
def interrupted_at_call(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """Ctrl-C while a chunk of texts is read."""

    def interrupt_at(call: int) -> None:
        calls = itertools.count(1)

        def counted(*reading: Any) -> Tensor:
            if next(calls) == call:
                os.kill(os.getpid(), signal.SIGINT)
            return each_text(*reading)

        monkeypatch.setattr(cached_states, "each_text", counted)

    yield interrupt_at
    monkeypatch.undo()


def test_ctrl_c_in_a_refresh_leaves_no_half_of_it(
    whole: Run, tmp_path: Path, interrupted_at_call: Callable[[int], None], capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run"
    interrupted_at_call(3)
    with pytest.raises(KeyboardInterrupt):
        trained(path, **CACHED)
    assert "saved at step 0; the same command resumes." in capsys.readouterr().err
    assert [name for name in files(path) if name.startswith("states/")] == []
    interrupted_at_call(0)
    assert_same_run(trained(path, **CACHED), whole)


def stopped(path: Path, monkeypatch: pytest.MonkeyPatch, step: int) -> Run:
    """A run interrupted at a step."""
    log = Run.log

    def logged(run: Run, **values: Any) -> None:
        log(run, **values)
        if values["step"] == step and "loss" in values:
            os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patched:
        patched.setattr(Run, "log", logged)
        with pytest.raises(KeyboardInterrupt):
            trained(path, **CACHED)
    return Run(path)


def test_ctrl_c_keeps_the_states(whole: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = stopped(tmp_path / "run", monkeypatch, 8)
    store = StateStore.open(run.states / "last")
    assert store is not None
    assert store.about["step"] == 6
    assert_same_run(trained(run.path, **CACHED), whole)


def test_states_that_are_lost_are_computed_from_the_weights_there_are(
    whole: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = stopped(tmp_path / "run", monkeypatch, 8)
    for harm in ("removed", "cut", "of another time"):
        damaged = Run(shutil.copytree(run.path, tmp_path / harm))
        file = damaged.states / "last" / "states.npy"
        if harm == "removed":
            shutil.rmtree(damaged.states)
        elif harm == "cut":
            file.write_bytes(file.read_bytes()[:-1])
        else:
            about = damaged.states / "last" / "about.json"
            about.write_text(about.read_text().replace('"step": 6', '"step": 5'))
        capsys.readouterr()
        trained(damaged.path, **CACHED)
        sentence = f"{damaged.path}: computing the neighbours' states of step 8 anew."
        assert sentence in capsys.readouterr().err
        assert list(refreshes(damaged)) == [0, 6, 8, 12, 18]
        assert differ(damaged, whole)


def test_a_larger_budget_goes_on_with_new_states(
    whole: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for steps in (6, 8, STEPS):
        capsys.readouterr()
        run = trained(tmp_path / "run", **CACHED, max_steps=steps)
    assert "computing the neighbours' states of step 8 anew" in capsys.readouterr().err
    assert list(refreshes(run)) == [0, 6, 8, 12, 18]
    assert run.metrics()[-1]["step"] == STEPS
    for steps in (6, 12, STEPS):  # where a refresh is due anyway nothing is lost
        run = trained(tmp_path / "due", **CACHED, max_steps=steps)
    assert not differ(run, whole)
    assert not differ(run, whole, LAST[1])


def test_the_progress_says_what_takes_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr("heterformer.progress.Bar.describe", lambda self, text: said.append(text))
    run = trained(tmp_path / "run", **CACHED, max_steps=1)
    texts = refreshes(run)[0]
    shown = [text for text in said if text.startswith("refreshing states")]
    assert shown[0] == f"refreshing states, {-(-texts // 5)} of {texts} texts"
    assert shown[-1] == f"refreshing states, {texts} of {texts} texts"


def test_states_of_no_neighbours(tmp_path: Path) -> None:
    trainer = new_trainer(tmp_path / "run")
    batches = trainer.batches
    lonely = Batcher(batches.batcher.visible, batches.batcher.tokens, fan_out={"author": 2})
    batches = TrainingBatches(lonely, batches.pairs, 16, 0)
    cached = CachedStates(trainer.model, trainer.model.text_states, batches, tmp_path / "states", 3)
    assert list(cached.refresh(0, 3)) == []
    assert cached.for_batch(batches.batch(0, 0)).shape == (0, *cached.shape)
    assert not cached.needs_refresh(2)
    assert cached.needs_refresh(3)
