"""Ranges of options: read from a text, and drawn from by a trial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from heterformer.errors import OptionError
from heterformer.options import expected, read_value
from heterformer.training.flat_options import flat_options, option_hints
from heterformer.training.options import TrainingOptions
from heterformer.tuning.options import TuneOptions

RATES = ("learning_rate", "new_learning_rate", "textless_learning_rate")
FACTOR = 10.0  # up and down from a rate's default
FORMS = "NAME=LOW:HIGH, NAME=LOW:HIGH:log or NAME=A,B,C"
# They say what is learnt or where it is kept, not how.
FIXED = ("model", "init", "device", "tensorboard", "wandb", "mlflow")


class OptunaTrial(Protocol):
    """The methods of ``optuna.Trial`` that ranges call, for which Optuna need not be installed."""

    def suggest_float(self, name: str, low: float, high: float, *, log: bool = False) -> float: ...

    def suggest_int(self, name: str, low: int, high: int, *, log: bool = False) -> int: ...

    def suggest_categorical(self, name: str, choices: Sequence[Any]) -> Any: ...


@dataclass(frozen=True)
class Numbers:
    """Whole numbers or others from ``low`` to ``high``."""

    name: str
    low: float
    high: float
    log: bool
    whole: bool

    def choose(self, trial: OptunaTrial) -> Any:
        if self.whole:
            return trial.suggest_int(self.name, int(self.low), int(self.high), log=self.log)
        return trial.suggest_float(self.name, self.low, self.high, log=self.log)


@dataclass(frozen=True)
class Choices:
    """One of some values."""

    name: str
    values: tuple[Any, ...]

    def choose(self, trial: OptunaTrial) -> Any:
        return trial.suggest_categorical(self.name, self.values)


Range = Numbers | Choices


def read_ranges(texts: Sequence[str], options: TrainingOptions) -> list[Range]:
    """The ranges that texts describe; without any, those of the learning rates."""
    if not texts:
        resolved = flat_options(options.resolved())
        return [Numbers(n, resolved[n] / FACTOR, resolved[n] * FACTOR, True, False) for n in RATES]
    ranges = [_read(text, options) for text in texts]
    names = [one.name for one in ranges]
    if repeated := {name for name in names if names.count(name) > 1}:
        raise _problem(f"has {repeated.pop()!r} twice, expected each option once.")
    return ranges


def _read(text: str, options: TrainingOptions) -> Range:
    name, equals, values = text.partition("=")
    name, hints = name.strip().removeprefix("--").replace("-", "_"), option_hints(options)
    if not equals or not values:
        raise _problem(f"has {text!r}, expected {FORMS}.")
    if name not in hints or name in FIXED:
        raise _problem(f"has {text!r}, but {name!r} is no option of the model or the training to choose.")
    hint = hints[name]
    try:
        if ":" not in values:
            return Choices(name, tuple(read_value(each.strip(), hint) for each in values.split(",")))
        low, high, *more = values.split(":")
        limits = [read_value(each.strip(), hint) for each in (low, high)]
        if more not in ([], ["log"]) or not all(_is_number(limit) for limit in limits):
            raise ValueError
    except ValueError:
        raise _problem(f"has {text!r}, expected {FORMS}, each being {expected(hint)}.") from None
    if not limits[0] < limits[1] or (more and limits[0] <= 0):
        least = "0 < LOW < HIGH" if more else "LOW < HIGH"
        raise _problem(f"has {text!r}, expected {least}.")
    whole = all(isinstance(limit, int) for limit in limits)
    return Numbers(name, limits[0], limits[1], bool(more), whole)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _problem(problem: str) -> OptionError:
    return OptionError(TuneOptions, "ranges", problem)
