"""How to divide the query nodes. Kept apart from the work, so that the command line loads at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from heterformer.errors import OptionError
from heterformer.options import MAX_LARGE_SEED, check_seed


@dataclass(frozen=True)
class SplitOptions:
    """How the query nodes, or the pairs, of each predicted relation are divided."""

    by: Literal["random", "column", "time"] = "random"
    """Divide at random, by the node table's 'split' column, or by its 'time' column."""
    divide: Literal["queries", "pairs"] = "queries"
    """What is divided: query nodes, each with one pair (the paper), or all pairs of a relation, as is usual
    for recommendation, so that each query has some of its pairs in every part."""
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
    cold: float = 0.0
    """Share of the target nodes all of whose pairs are for the test: known by their text alone."""
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
        check_seed(self, largest=MAX_LARGE_SEED)  # runs with large seeds exist
        if self.hold_out and self.by != "random":
            problem = "applies to a random split only; a time split hides later nodes itself."
            raise OptionError(self, "hold_out", problem)
        if not 0 <= self.cold < 1:
            raise OptionError(self, "cold", f"is {self.cold}, expected a share from 0 to less than 1.")
        if self.cold and self.divide == "queries":
            raise OptionError(self, "cold", "needs {divide} pairs, of which those of cold nodes are tested.")
