"""Sinks get the numbers that the run's own file has; a resumed run goes on where it was."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from heterformer.errors import InputError
from heterformer.training.run import Run
from heterformer.training.sinks.mlflow import Mlflow
from heterformer.training.sinks.sink import SINKS, numbers, open_sinks
from heterformer.training.sinks.tensorboard import TensorBoard
from heterformer.training.sinks.wandb import WeightsAndBiases
from tests.training.runs import options, trained

STEPS = 3


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """A run with all sinks, offline, stopped after two steps and resumed for the third."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WANDB_MODE", "offline")
        for name in ("MLFLOW_TRACKING_URI", "WANDB_DIR"):
            patch.delenv(name, raising=False)
        path = tmp_path_factory.mktemp("sinks") / "run"
        for steps in (2, STEPS):
            trained(path, max_steps=steps, tensorboard=True, wandb="project", mlflow="papers")
        yield Run(path)


def test_every_sink_is_listed() -> None:
    classes = (TensorBoard, WeightsAndBiases, Mlflow)
    assert list(SINKS.values()) == [(one.__module__, one.__name__) for one in classes]


def losses(run: Run) -> list[float]:
    return [line["loss"] for line in run.metrics() if "loss" in line]


def test_tensorboard_has_the_curves(run: Run) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = accumulator.EventAccumulator(str(run.path / "tensorboard")).Reload()
    assert [event.step for event in events.Scalars("loss")] == [1, 2, 3]
    assert [event.value for event in events.Scalars("loss")] == pytest.approx(losses(run))
    assert {"validation/prec", "validation/mrr", "warm_up/mrr"} <= set(events.Tags()["scalars"])


def test_mlflow_has_them_in_one_run(run: Run) -> None:
    from mlflow.tracking import MlflowClient

    client = MlflowClient(tracking_uri=f"sqlite:///{run.path / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("papers")
    (logged,) = client.search_runs([experiment.experiment_id])
    history = client.get_metric_history(logged.info.run_id, "loss")
    assert [(m.step, m.value) for m in history] == [
        (step, pytest.approx(loss)) for step, loss in enumerate(losses(run), 1)
    ]
    assert "validation/prec" in logged.data.metrics
    assert logged.data.params["batch_size"] == str(run.options().batch_size)
    assert (logged.info.status, logged.info.run_name) == ("FINISHED", "run")


def test_weights_and_biases_has_them_offline(run: Run) -> None:
    files = sorted((run.path.parent / "wandb").glob("offline-run-*/run-*.wandb"))
    assert len(files) == 2  # of both calls, with one id: a sync joins them
    assert len({file.name for file in files}) == 1
    for file in files:
        content = file.read_bytes()
        assert b"validation/prec" in content
        assert b"batch_size" in content


def test_numbers_of_a_line() -> None:
    values = {"epoch": 1, "validation": {"prec": 0.5, "name": "x"}, "done": True}
    assert dict(numbers(values)) == {"epoch": 1.0, "validation/prec": 0.5}


@pytest.mark.parametrize("option", SINKS)
def test_a_package_that_is_not_installed(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = {"tensorboard": "tensorboard.compat.proto.event_pb2", "mlflow": "mlflow.tracking"}
    monkeypatch.setitem(sys.modules, packages.get(option, option), None)
    asked = options(**{option: True if option == "tensorboard" else "x"})
    with pytest.raises(
        InputError, match=rf"{option} needs its package: pip install 'heterformer\[{option}\]'"
    ):
        open_sinks(Run(tmp_path), asked)


def test_without_an_option_there_is_no_sink(tmp_path: Path) -> None:
    assert open_sinks(Run(tmp_path), options()) == []
