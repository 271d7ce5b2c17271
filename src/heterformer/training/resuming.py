"""Which options may change when a run is resumed, and which values it keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from heterformer.recipe import RECIPE, Default
from heterformer.training.flat_options import flat_options
from heterformer.training.options import TrainingOptions

# Options that may change when a run is resumed. A micro-batch changes only what dropout draws.
RESUMABLE = (
    "max_steps",
    "max_minutes",
    "epochs",
    "checkpoint_minutes",
    "tensorboard",
    "wandb",
    "mlflow",
    "device",
    "compile",
    "micro_batch",
)


def changed_options(before: TrainingOptions, now: TrainingOptions) -> list[str]:
    """The names of options that differ and decide the result. Others may change when a run is resumed."""
    old, new = flat_options(before), flat_options(now)
    if old["neighbor_states"] == new["neighbor_states"] == "live":
        del new["refresh_every"]  # nothing is refreshed
    return [name for name in new if name not in RESUMABLE and old.get(name, new[name]) != new[name]]


def keep_earlier_defaults(
    saved: TrainingOptions, current: TrainingOptions, recipe: Mapping[str, Default] = RECIPE
) -> tuple[TrainingOptions, list[str]]:
    """The current options for a saved run, with its own values of options whose default has changed since.

    The same command must resume a run although a default is another one now. Also gives the names of the
    options that are kept.
    """
    before, now, kept = flat_options(saved), flat_options(current), []
    decided = flat_options(current.resolved())
    values: dict[str, Any] = {}
    for name, default in recipe.items():
        differ = name in before and name in now and before[name] != decided[name]
        if differ and (before[name], now[name]) == (default.earlier, default.value):
            values[name] = before[name]
            kept.append(f"{name} {before[name]}")
    of_model = {name: value for name, value in values.items() if name in current.model.option_names()}
    own = {name: value for name, value in values.items() if name not in of_model}
    return replace(current, model=replace(current.model, **of_model), **own), kept
