"""What a user can choose about a supervised task. One sentence per option, which is also its help text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from heterformer.errors import OptionError
from heterformer.network.label_options import LabelOptions
from heterformer.options import check_seed

SupervisedTask = Literal["classification", "regression"]
TargetKind = Literal["single", "multi", "number"]  # one class of a node, any number of classes, a number


@dataclass(frozen=True)
class TargetOptions(LabelOptions):
    """What a supervised task predicts, and from which nodes it learns."""

    type: str | None = None
    """The node type to predict for; unless given, the only type that has labels."""
    column: str | None = None
    """The numeric column that regression predicts, among those of 'keep' and 'attributes'."""
    split_by: Literal["stratified", "column", "time"] = "stratified"
    """Divide labelled nodes 7:1:2 class by class, by the node table's 'split' column, or by its 'time'."""
    fraction: float = 1.0
    """Share of the training part whose labels are used."""
    split_seed: int = 0
    """Seed of the division, and of which labels are used."""
    visible_labels: bool = False
    """Train although a relation, or an attribute that the model reads, reveals the label of its nodes."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.fraction <= 1:
            problem = f"is {self.fraction}, expected a share above 0 and up to 1."
            raise OptionError(self, "fraction", problem)
        check_seed(self, "split_seed")
