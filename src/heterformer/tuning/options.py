"""Options of a search for training options. Each has one sentence, which is also its help text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import arg

from heterformer.errors import OptionError
from heterformer.options import check_seed


@dataclass(frozen=True)
class TuneOptions:
    """How many trainings to try, and what differs between them."""

    trials: int = 20
    """Number of trials in all; the same command with a larger number continues."""
    ranges: Annotated[tuple[str, ...], arg(metavar="NAME=RANGE")] = ()
    """Options of 'train' to choose, each as NAME=LOW:HIGH, NAME=LOW:HIGH:log or NAME=A,B,C; by default, the
    three learning rates from a tenth to ten times their defaults."""
    prune: bool = True
    """Stop a trial whose validation PREC is below the median of the others' at the same step."""
    tune_seed: int = 0
    """Seed of the choices."""

    def __post_init__(self) -> None:
        check_seed(self, "tune_seed")
        if self.trials < 1:
            raise OptionError(self, "trials", f"is {self.trials}, expected at least 1.")
