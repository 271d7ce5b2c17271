"""What a user can choose about a map. Each option has one sentence, which is also its help text."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from heterformer.errors import OptionError

MOST_CLASSES = 8  # colours that everybody can tell apart


@dataclass(frozen=True)
class MapOptions:
    """Which nodes to show, and how to lay them out."""

    types: tuple[str, ...] = ()
    """Show nodes of these types; unless given, of text-rich types with labels or, without labels, of all."""
    classes: tuple[str, ...] = ()
    """Show only nodes with these labels, eight at most; unless given, all, and frequent labels in colour."""
    max_nodes: int = 5000
    """Show a random sample of so many nodes, as many of each type as far as there are."""
    perplexity: float = 30.0
    """How many neighbours a node should stay close to; less if there are few nodes."""
    seed: int = 0
    """Seed of the sample and of the layout."""

    def __post_init__(self) -> None:
        if len(set(self.classes)) > MOST_CLASSES:
            problem = f"has {len(set(self.classes))} labels, expected at most {MOST_CLASSES}."
            raise OptionError(self, "classes", problem)
        if self.max_nodes < 1:
            raise OptionError(self, "max_nodes", f"is {self.max_nodes}, expected at least 1.")
        if not 1 <= self.perplexity < inf:
            raise OptionError(self, "perplexity", f"is {self.perplexity}, expected at least 1.")
        if self.seed < 0:
            raise OptionError(self, "seed", f"is {self.seed}, expected 0 or more.")
