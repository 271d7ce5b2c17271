"""How to divide the query nodes. Kept apart from the work, so that the command line loads at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from heterformer.errors import OptionError


@dataclass(frozen=True)
class SplitOptions:
    """How the query nodes of the predicted relation are divided."""

    by: Literal["random", "column", "time"] = "random"
    """Divide at random, by the node table's 'split' column, or by its 'time' column."""
    train: float = 0.7
    """Share of the query nodes that training learns from."""
    validation: float = 0.1
    """Share of the query nodes for early stopping; the rest is the test part."""
    hold_out: float = 0.0
    """Share of the query nodes that training must not see, not even as neighbours (inductive setting)."""
    hold_out_with: str | None = None
    """Hide the nodes of this type next to held-out nodes as well, such as their authors."""
    also: str | None = None
    """Hide pairs of this relation too, for 'evaluate' to ask for unseen ones (with commas, of several)."""
    seed: int = 0
    """Seed of the division and of the one positive pair drawn per query."""
    file: str | None = None
    """Take the pairs from this table, as 'heterformer split' writes it, instead of drawing them."""

    def __post_init__(self) -> None:
        if not (self.train > 0 and self.validation > 0 and self.train + self.validation < 1):
            problem = f"is {self.train} and {{validation}} {self.validation}, expected positive shares"
            raise OptionError(self, "train", f"{problem} that leave some for the test.")
        if not 0 <= self.hold_out < 1 - self.train:
            bounds = f"at least 0 and less than {1 - self.train:g} (1 - {{train}})"
            raise OptionError(self, "hold_out", f"is {self.hold_out}, expected {bounds}.")
        if self.hold_out_with is not None and not self.hold_out:
            raise OptionError(self, "hold_out_with", "needs {hold_out}, the share of query nodes to hide.")
        if self.seed < 0:
            raise OptionError(self, "seed", f"is {self.seed}, expected 0 or more.")
        if self.hold_out and self.by != "random":
            problem = "applies to a random split only; a time split hides later nodes itself."
            raise OptionError(self, "hold_out", problem)
