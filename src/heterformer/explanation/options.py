"""What a user can choose about an explanation. Each option has one sentence, which is also its help text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import arg

from heterformer.errors import OptionError


@dataclass(frozen=True)
class ExplainOptions:
    """What to explain, against what, and how it is shown."""

    node_type: Annotated[str, arg(name="type", metavar="TYPE")] = ""
    """The node's type, if nodes of several types have its id or name."""
    against: Annotated[Path | None, arg(metavar="OTHER_RUN")] = None
    """Another run on the same network to show beside it, such as one trained with --no-warm-up."""
    queries: Literal["auto", "cls", "all"] = "auto"
    """Whose attention: [CLS]'s, all tokens' (mean), or (auto) that of the tokens the vector is read from."""
    top: int = 10
    """Show so many neighbours of each kind; JSON has all."""
    figure: Path | None = None
    """The PNG file to draw; RUN/figures/attention-ID.png (-against-OTHER_RUN.png) unless given."""
    json: bool = False
    """Print JSON instead of tables."""

    def __post_init__(self) -> None:
        if self.top < 1:
            raise OptionError(self, "top", f"is {self.top}, expected at least 1.")
        if self.figure is not None and self.figure.suffix.lower() != ".png":
            problem = f"is {str(self.figure)!r}, expected a name that ends in .png."
            raise OptionError(self, "figure", problem)
