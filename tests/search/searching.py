"""A tiny run to search in, trained once."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from heterformer.network.build.frames import temporary_folder
from heterformer.training.train import train
from tests.learning import tiny_network, tiny_options, tiny_reader


@cache
def tiny_run() -> Path:
    """A run on ``tiny_network``; whoever changes it works on a copy."""
    options = tiny_options(tiny_reader(), max_steps=6)
    return train(tiny_network(), temporary_folder() / "run", options).path
