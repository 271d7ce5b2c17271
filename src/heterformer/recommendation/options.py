"""Options of a recommendation. Each option has one sentence, which is also its help text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import UseAppendAction, arg

from heterformer.errors import OptionError
from heterformer.search.options import check_link_weight


@dataclass(frozen=True)
class RecommendOptions:
    """What to recommend, and to whom."""

    likes: Annotated[tuple[str, ...], arg(metavar="ID"), UseAppendAction] = ()
    """Recommend to a user who is not in the network and has this item, given by id or name; repeat it for
    several."""
    type: Annotated[str, arg(metavar="TYPE")] = ""
    """Recommend nodes of this type; by default, what the first predicted relation joins the user to."""
    top: int = 10
    """Number of recommendations."""
    exclude_known: bool = False
    """Leave out nodes that are already neighbours of the user."""
    link_weight: float | Literal["auto"] = "auto"
    """How much the links of a node count, by the log of their number: 0 for what is closest to the user, 1
    for what the user is most likely linked to; 'auto' is 1 less what training has corrected for."""
    where: Annotated[str, arg(metavar="FILTER")] = ""
    """Recommend only nodes that meet this filter over their columns: "year >= 2015 and label == 'Drama'"."""
    network: Path | None = None
    """Recommend from another network of the same types, with nodes that training did not see."""
    device: Literal["auto", "cpu"] = "auto"
    """Where to compute: a GPU if there is one, or the CPU."""
    json: bool = False
    """Print JSON instead of tables."""

    def __post_init__(self) -> None:
        if self.top < 1:
            raise OptionError(self, "top", f"is {self.top}, expected at least 1.")
        check_link_weight(self, self.link_weight)
