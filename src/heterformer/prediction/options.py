"""Options of ``heterformer predict``. Each option has one sentence, which is also its help text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from heterformer.errors import OptionError


@dataclass(frozen=True)
class PredictOptions:
    """Which predictions to write, and how to compute them."""

    top: int = 3
    """Number of classes to list for each node, the most probable first."""
    precision: Literal["no", "bf16", "auto"] = "no"
    """Mixed precision: none, bf16, or bf16 where the processor has it."""
    device: Literal["auto", "cpu"] = "auto"
    """Where to compute: a GPU if there is one, or the CPU."""
    overwrite: bool = False
    """Replace an output that exists."""

    def __post_init__(self) -> None:
        if self.top < 1:
            raise OptionError(self, "top", f"is {self.top}, expected at least 1.")
