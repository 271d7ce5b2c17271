"""Options of ``heterformer predict``. Each option has one sentence, which is also its help text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from heterformer.errors import InputError, OptionError
from heterformer.files import check_new
from heterformer.precision import Precision


@dataclass(frozen=True)
class PredictOptions:
    """Which predictions to write, and how to compute them."""

    top: int = 3
    """Number of classes to list for each node, the most probable first."""
    precision: Precision = "auto"
    """Precision of matrix products; bf16 rounds, and 'auto' is bf16 where the processor has instructions for
    it."""
    device: Literal["auto", "cpu"] = "auto"
    """Where to compute: a GPU if there is one, or the CPU."""
    overwrite: bool = False
    """Replace an output that exists."""

    def __post_init__(self) -> None:
        if self.top < 1:
            raise OptionError(self, "top", f"is {self.top}, expected at least 1.")

    def check_out(self, out: Path) -> None:
        """Refuse a file that is not written, or not replaced."""
        if out.suffix != ".parquet":
            raise InputError(f"{out}: expected a name that ends in .parquet.")
        if not self.overwrite:
            check_new(out)


def no_head(run: Path) -> InputError:
    """The mistake that a run predicts nothing."""
    remedy = f"'heterformer finetune {run} OUT' makes one that does"
    return InputError(f"{run}: has not learnt to predict labels; {remedy}.")
