"""The commands: each is a plain function; its options are documented in their own classes.

Commands import what they need when they run: to show help takes no library of tables or tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from heterformer.cli.commands.answers import distill, push, recommend, search, serve
from heterformer.cli.commands.networks import build, check, dataset, describe, export, split, synth
from heterformer.cli.commands.training import compare, finetune, plan, plot, train, tune
from heterformer.cli.commands.vectors import embed, evaluate, explain, map_nodes, predict

COMMANDS: dict[str, Callable[..., Any]] = {
    "build": build,
    "describe": describe,
    "check": check,
    "plan": plan,
    "train": train,
    "finetune": finetune,
    "predict": predict,
    "evaluate": evaluate,
    "embed": embed,
    "search": search,
    "distill": distill,
    "push": push,
    "recommend": recommend,
    "explain": explain,
    "serve": serve,
    "compare": compare,
    "tune": tune,
    "plot": plot,
    "map": map_nodes,
    "split": split,
    "export": export,
    "synth": synth,
    "dataset": dataset,
}
DISTRIBUTED = ("train", "finetune", "embed", "evaluate")  # run in several processes, too
