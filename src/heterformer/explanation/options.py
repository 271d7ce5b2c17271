"""Options of an explanation. Each option has one sentence, which is also its help text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import arg

from heterformer.errors import OptionError


@dataclass(frozen=True)
class ExplainOptions:
    """The node's type, a node or a run to compare with, and the output."""

    node_type: Annotated[str, arg(name="type", metavar="TYPE")] = ""
    """The node's type, if nodes of several types have its id or name."""
    pair: Annotated[str, arg(metavar="ID")] = ""
    """Another node, by id or name: explain the score of the two, by what it is without each neighbour and
    word of the first."""
    pair_type: Annotated[str, arg(metavar="TYPE")] = ""
    """The type of that node, if nodes of several types have its id or name."""
    against: Annotated[Path | None, arg(metavar="OTHER_RUN")] = None
    """Another run on the same network to show beside it, such as one without warm-up."""
    queries: Literal["auto", "cls", "all"] = "auto"
    """Whose attention to show: that of [CLS], the mean over all tokens, or (auto) that of the readout."""
    top: int = 10
    """Number of neighbours of each kind to show; JSON has all."""
    network: Path | None = None
    """Explain a node of another network of the same types, which training need not have seen."""
    figure: Path | None = None
    """The PNG file to write, of attention if there is any, else of effects; by default both are drawn into
    RUN/figures."""
    json: bool = False
    """Print JSON instead of tables."""

    def __post_init__(self) -> None:
        if self.top < 1:
            raise OptionError(self, "top", f"is {self.top}, expected at least 1.")
        if self.pair and self.against is not None:
            raise OptionError(self, "against", "shows the attention of two runs; leave out {pair}.")
        if self.pair_type and not self.pair:
            raise OptionError(self, "pair_type", "is the type of the node {pair}; give {pair} as well.")
        if self.figure is not None and self.figure.suffix.lower() != ".png":
            problem = f"is {str(self.figure)!r}, expected a name that ends in .png."
            raise OptionError(self, "figure", problem)
