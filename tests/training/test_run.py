from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from heterformer.errors import InputError
from heterformer.models import Heterformer
from heterformer.network.store import Network
from heterformer.training.early_stopping import EarlyStopping
from heterformer.training.optimizers import Optimizers
from heterformer.training.options import TrainingOptions
from heterformer.training.resuming import RESUMABLE
from heterformer.training.run import Position, Run
from tests.learning import tiny_model, tiny_network, tiny_options
from tests.models.random_batches import random_batch, save_backbone, schema

OPTIONS = tiny_options("reader", max_steps=5)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A new run on the tiny network."""
    run = Run(tmp_path / "run")
    run.start(tiny_network(), OPTIONS)
    return run


def complaint(action: Any, *arguments: Any) -> str:
    with pytest.raises(InputError) as caught:
        action(*arguments)
    return str(caught.value)


def test_a_run_knows_what_was_asked(run: Run) -> None:
    assert run.exists
    assert not run.started
    assert run.options() == OPTIONS
    assert run.network().path == tiny_network().path.resolve()


def test_a_folder_that_is_no_run(tmp_path: Path) -> None:
    expected = f"{tmp_path}: not a run, expected a folder that 'heterformer train' wrote."
    assert complaint(Run(tmp_path).options) == expected
    assert complaint(Run(tmp_path).network) == expected


def test_a_new_run_takes_no_folder_that_holds_something_else(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    start = Run(tmp_path).start
    assert complaint(start, tiny_network(), OPTIONS) == (
        f"{tmp_path}: exists and is not a run; choose another name."
    )
    assert os.listdir(tmp_path) == ["thesis.tex"]


def test_a_new_run_takes_no_files_place(tmp_path: Path) -> None:
    path = tmp_path / "thesis.tex"
    path.write_text("years of work")
    assert "is a file, expected the folder of a run" in complaint(Run(path).start, tiny_network(), OPTIONS)
    assert path.read_text() == "years of work"


def test_a_new_run_takes_an_empty_folder(tmp_path: Path) -> None:
    Run(tmp_path).start(tiny_network(), OPTIONS)
    assert Run(tmp_path).options() == OPTIONS


def test_goes_on_with_the_same_options_only(run: Run) -> None:
    changed = replace(OPTIONS, batch_size=9, split=replace(OPTIONS.split, seed=1), seed=3)
    run.check(tiny_network(), OPTIONS)
    remedy = f"give the old values (they are in {run.path / 'config.yaml'}) or another run folder"
    assert complaint(run.check, tiny_network(), changed) == (
        f"{run.path}: cannot resume with batch_size, seed, split.seed changed; {remedy}."
    )


@pytest.mark.parametrize("option", RESUMABLE)
def test_goes_on_with_another_budget(run: Run, option: str) -> None:
    values: dict[str, Any] = {"device": "auto", "tensorboard": True, "micro_batch": 8}
    run.check(tiny_network(), replace(OPTIONS, **{option: values.get(option, 77)}))


def test_goes_on_with_the_same_network_only(run: Run, tmp_path: Path) -> None:
    other = shutil.copytree(tiny_network().path, tmp_path / "other")
    Run(run.path).check(Network.open(other), OPTIONS)  # a copy is the same network
    described = other / "network.json"
    described.write_text(described.read_text().replace(tiny_network().fingerprint, "0" * 32))
    assert complaint(run.check, Network.open(other), OPTIONS) == (
        f"{run.path}: {other} is not the network it was trained on (its contents differ); "
        "start another run folder."
    )


def test_does_not_open_a_network_that_has_changed(tmp_path: Path) -> None:
    path = shutil.copytree(tiny_network().path, tmp_path / "net")
    run = Run(tmp_path / "run")
    run.start(Network.open(path), OPTIONS)
    described = path / "network.json"
    described.write_text(described.read_text().replace(tiny_network().fingerprint, "0" * 32))
    assert "is not the network it was trained on" in complaint(run.network)


# --- Checkpoints -----------------------------------------------------------------------------------------


class Training:
    """A model of which a step changes the weights and the optimisers' state."""

    def __init__(self, backbone: str) -> None:
        torch.manual_seed(0)
        self.model = Heterformer.from_backbone(backbone, schema())
        self.optimizers = Optimizers(self.model, TrainingOptions(learning_rate=1e-2))

    def step(self) -> None:
        self.model.encode_batch(random_batch(0)).square().sum().backward()
        self.optimizers.step()
        self.optimizers.zero_grad()

    def everything(self) -> dict[str, torch.Tensor]:
        values = self.model.state_dict() | self.optimizers.tensors()
        return {name: value.clone() for name, value in values.items()}


@pytest.fixture(scope="module")
def backbone(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_backbone(tmp_path_factory.mktemp("backbone"))


def differences(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> set[str]:
    return {
        k for k in one.keys() | other.keys() if k not in one or k not in other or not one[k].equal(other[k])
    }


def test_a_checkpoint_restores_everything(run: Run, backbone: str) -> None:
    training, other = Training(backbone), Training(backbone)
    training.step()
    position = Position(epoch=2, step_of_epoch=3, step=17, seconds=0.1 + 0.2)
    early = EarlyStopping(3, best=1 / 3, best_step=9, waited=2)
    run.save_checkpoint(training.model, training.optimizers, position, early)
    assert run.started
    assert run.load_checkpoint(other.model, other.optimizers) == (position, early)
    assert differences(training.everything(), other.everything()) == set()
    training.step()
    other.step()
    assert differences(training.everything(), other.everything()) == set()


def test_a_checkpoint_before_the_first_evaluation(run: Run, backbone: str) -> None:
    training = Training(backbone)
    run.save_checkpoint(training.model, training.optimizers, Position(), EarlyStopping(3))
    assert run.load_checkpoint(training.model, training.optimizers) == (Position(), EarlyStopping(3))


@pytest.mark.parametrize("rename", [1, 2])
def test_a_kill_while_a_checkpoint_is_replaced_leaves_the_old_one(
    run: Run, backbone: str, monkeypatch: pytest.MonkeyPatch, rename: int
) -> None:
    training = Training(backbone)
    training.step()
    before = training.everything()
    run.save_checkpoint(training.model, training.optimizers, Position(step=1), EarlyStopping(3))
    training.step()
    renames: list[int] = []
    really = os.rename

    def killed(*paths: Path) -> None:
        renames.append(1)
        if len(renames) == rename:
            raise KeyboardInterrupt
        really(*paths)

    with monkeypatch.context() as patched:
        patched.setattr(os, "rename", killed)
        with pytest.raises(KeyboardInterrupt):
            run.save_checkpoint(training.model, training.optimizers, Position(step=2), EarlyStopping(3))
    again, other = Run(run.path), Training(backbone)
    assert again.started
    position, _ = again.load_checkpoint(other.model, other.optimizers)
    assert position.step == 1
    assert differences(before, other.everything()) == set()


def test_the_best_weights_are_kept_apart(run: Run) -> None:
    best, later = tiny_model(seed=1), tiny_model(seed=2)
    run.save_best(best)
    run.load_best(later)
    assert differences(best.state_dict(), later.state_dict()) == set()
    assert not run.started


def test_without_best_weights_the_model_stays_as_it_is(run: Run) -> None:
    model, same = tiny_model(seed=1), tiny_model(seed=1)
    run.load_best(model)
    assert differences(model.state_dict(), same.state_dict()) == set()


# --- Metrics and split -----------------------------------------------------------------------------------


def test_metrics_are_read_as_they_were_logged(run: Run) -> None:
    assert run.metrics() == []
    lines = [{"step": 0, "warm_up": {"prec": 0.5}}, {"step": 1, "loss": 1 / 3}]
    for line in lines:
        run.log(**line)
    assert run.metrics() == lines


def test_a_folder_that_is_no_run_has_no_metrics(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a run, expected a folder that 'heterformer train' wrote"):
        Run(tmp_path / "typo").metrics()


def test_metrics_after_the_checkpoint_are_forgotten(run: Run) -> None:
    for step in range(5):
        run.log(step=step, loss=step / 7)
    run.log(step=3, validation={"prec": 0.5})
    run.rewind_metrics(3)
    assert [line["step"] for line in run.metrics()] == [0, 1, 2, 3, 3]
    run.rewind_metrics(-1)
    assert run.metrics() == []


def test_a_refresh_comes_after_the_checkpoint_of_its_step(run: Run) -> None:
    for step in (0, 2, 4):
        run.log(step=step, loss=0.5)
        run.log(step=step, refresh={"texts": 9})
    run.rewind_metrics(2)
    assert [(line["step"], "refresh" in line) for line in run.metrics()] == [
        (0, False),
        (0, True),
        (2, False),
    ]


def test_a_line_that_a_kill_cut_is_forgotten(run: Run) -> None:
    run.log(step=1, loss=0.5)
    with (run.path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 2, "lo')
    assert run.metrics() == [{"step": 1, "loss": 0.5}]
    run.rewind_metrics(2)
    run.log(step=2, loss=0.25)
    assert [line["step"] for line in run.metrics()] == [1, 2]


def test_the_split_is_made_once(run: Run) -> None:
    first = run.split(tiny_network(), OPTIONS.split)
    again = run.split(tiny_network(), replace(OPTIONS.split, seed=5))
    assert all(np.array_equal(getattr(first, p), getattr(again, p)) for p in ("train", "validation", "test"))
    assert len(first.test) > 0


def test_the_split_is_what_the_runs_options_say(run: Run, tmp_path: Path) -> None:
    other = Run(tmp_path / "other")
    other.start(tiny_network(), replace(OPTIONS, split=replace(OPTIONS.split, seed=5)))
    assert not np.array_equal(run.split(tiny_network()).test, other.split(tiny_network()).test)
