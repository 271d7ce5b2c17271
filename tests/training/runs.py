"""Runs on the tiny network: how to make them, kill them and compare them."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from heterformer.network.store import Network
from heterformer.training.options import TrainingOptions
from heterformer.training.run import Run
from heterformer.training.train import train
from tests.learning import tiny_network, tiny_options, tiny_reader

MANY = 1e9  # minutes, or evaluations
STEPS = 20  # with 16 pairs each this is two epochs and a bit


def options(**changes: Any) -> TrainingOptions:
    usual = {"backbone": tiny_reader(), "max_steps": STEPS, "patience": int(MANY)}
    return tiny_options(**usual | changes)


def trained(path: Path, **changes: Any) -> Run:
    return train(tiny_network(), path, options(**changes))


def tensors(run: Run, *files: str) -> dict[str, Tensor]:
    return {f"{file}/{name}": value for file in files for name, value in load_file(run.path / file).items()}


def without_seconds(values: Any) -> Any:
    """All that does not depend on how fast the computer is."""
    if isinstance(values, dict):
        return {name: without_seconds(value) for name, value in values.items() if "seconds" not in name}
    return [without_seconds(value) for value in values] if isinstance(values, list) else values


LAST = ("checkpoints/last/model.safetensors", "checkpoints/last/optimizer.safetensors")
EVERYTHING = (*LAST, "checkpoints/best/model.safetensors", "model.safetensors")


def assert_same_run(run: Run, other: Run, files: tuple[str, ...] = EVERYTHING) -> None:
    """Equal to the last bit: weights, optimiser state, metrics, position and patience."""
    one, two = tensors(run, *files), tensors(other, *files)
    assert one.keys() == two.keys()
    assert [name for name in one if not torch.equal(one[name], two[name])] == []
    assert without_seconds(run.metrics()) == without_seconds(other.metrics())
    states = [json.loads((r.last / "state.json").read_text()) for r in (run, other)]
    assert without_seconds(states[0]) == without_seconds(states[1])


def differ(run: Run, other: Run, file: str = LAST[0]) -> bool:
    one, two = tensors(run, file), tensors(other, file)
    return any(not torch.equal(one[name], two[name]) for name in one)


# --- Kills ------------------------------------------------------------------------------------------------


def train_at(network: Path, path: Path, options: TrainingOptions) -> None:
    train(Network.open(network), path, options)


def waiting_at(lines: int, until: Path, function: Callable[..., None], *arguments: Any) -> None:
    """In a process of its own: wait for a file when the metrics have so many lines, for a minute at most."""
    log = Run.log

    def logged(run: Run, **values: Any) -> None:
        log(run, **values)
        if len(run.metrics()) == lines:
            for _ in range(6000):
                if until.exists():
                    break
                time.sleep(0.01)

    Run.log = logged  # type: ignore[method-assign]
    function(*arguments)


class Killed(BaseException):
    """As sudden as kill -9: nothing but what is on the disk remains."""


def dying_at_rename(number: int, rename: Callable[..., None]) -> Callable[..., None]:
    calls = itertools.count(1)

    def counted(*paths: Any) -> None:
        if next(calls) == number:
            raise Killed
        rename(*paths)

    return counted
