"""What a user can choose about labels. Each option has one sentence, which is also its help text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from heterformer.errors import OptionError
from heterformer.options import check_at_least


@dataclass(frozen=True)
class LabelOptions:
    """Which labels count as classes, and how textless nodes come by theirs."""

    top_classes: int | None = None
    """Number of most frequent classes to keep; the paper keeps 30 of DBLP's."""
    min_members: int = 10
    """Leave out classes of fewer nodes: 10 is the fewest that 7:1:2 divides without rounding."""
    label: Literal["all", "first"] = "all"
    """All labels of a node, or only the first of its list, if that is the primary one."""
    textless: Literal["majority", "share"] = "majority"
    """A textless node has the class that most neighbours have, or (share) every class that enough have."""
    textless_share: float = 0.5
    """With 'share': the share of a node's labelled neighbours that must have a class."""

    def __post_init__(self) -> None:
        check_at_least(self, {"top_classes": 2, "min_members": 1})
        if not 0 < self.textless_share <= 1:
            problem = f"is {self.textless_share}, expected a share above 0 and up to 1."
            raise OptionError(self, "textless_share", problem)
