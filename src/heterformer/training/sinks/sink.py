"""What a sink is, and those that a run's options ask for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, Protocol

from heterformer.errors import OptionError
from heterformer.training.options import TrainingOptions
from heterformer.training.run import Run


class Sink(Protocol):
    """Takes the numbers of each line of a run's metrics.

    A sink is made of the run and its options, and may be made again for a run that is resumed.
    """

    def __init__(self, run: Run, options: TrainingOptions) -> None: ...

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        """Take the numbers of a step, by name: ``loss``, ``validation/prec``."""

    def close(self) -> None:
        """Write what is still held back."""


# The option that asks for a sink, which is also its extra: its module and class.
SINKS = {
    "tensorboard": ("heterformer.training.sinks.tensorboard", "TensorBoard"),
    "wandb": ("heterformer.training.sinks.wandb", "WeightsAndBiases"),
    "mlflow": ("heterformer.training.sinks.mlflow", "Mlflow"),
}


def open_sinks(run: Run, options: TrainingOptions) -> list[Sink]:
    """The sinks that the options ask for."""
    sinks: list[Sink] = []
    for option, (module, name) in SINKS.items():
        if getattr(options, option):
            try:
                sinks.append(getattr(import_module(module), name)(run, options))
            except ImportError:
                problem = f"needs its package: pip install 'heterformer[{option}]'."
                raise OptionError(TrainingOptions, option, problem) from None
    return sinks


def numbers(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    """The numbers of a metrics line, nested ones under their path."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from numbers(value, f"{prefix}{name}/")
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            yield prefix + name, float(value)
