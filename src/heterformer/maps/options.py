"""Options of a map. Each option has one sentence, which is also its help text."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from heterformer.errors import OptionError
from heterformer.options import check_seed

MAX_CLASSES = 8  # colours that remain distinct with colour blindness


@dataclass(frozen=True)
class MapOptions:
    """Which nodes to show, and how to lay them out."""

    types: tuple[str, ...] = ()
    """Show nodes of these types; by default, of text-rich types with labels or, without labels, of all."""
    classes: tuple[str, ...] = ()
    """Show only nodes with these labels, at most eight; by default, all nodes, the most frequent labels in
    colour."""
    max_nodes: int = 5000
    """Maximum number of nodes; more are sampled at random, equally many of each type. For 20,000 nodes or
    more an estimate of the time is printed first."""
    perplexity: float = 30.0
    """Perplexity of t-SNE; lowered for few nodes."""
    seed: int = 0
    """Seed for the sample and the layout."""

    def __post_init__(self) -> None:
        if len(set(self.classes)) > MAX_CLASSES:
            problem = f"has {len(set(self.classes))} labels, expected at most {MAX_CLASSES}."
            raise OptionError(self, "classes", problem)
        if self.max_nodes < 1:
            raise OptionError(self, "max_nodes", f"is {self.max_nodes}, expected at least 1.")
        if not 1 <= self.perplexity < inf:
            raise OptionError(self, "perplexity", f"is {self.perplexity}, expected at least 1.")
        check_seed(self)
