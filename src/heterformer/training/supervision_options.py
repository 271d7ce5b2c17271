"""What a user can choose about learning from labels. One sentence per option, which is also its help text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from heterformer.errors import OptionError
from heterformer.network.target_options import TargetOptions


@dataclass(frozen=True)
class SupervisionOptions(TargetOptions):
    """What is learnt from labels, and how."""

    loss_weight: float = 1.0
    """Weight of the supervised loss beside that of link prediction."""
    class_weights: Literal["none", "balanced"] = "none"
    """Weight classes in inverse proportion to their frequency, so that rare ones count as much."""
    smoothing: float = 0.0
    """Label smoothing: the share of the target that is spread over all classes."""
    head_warm_up: bool = True
    """Fit the head to the vectors as they are before the whole model learns."""
    head_width: int = 200
    """Width of the head's hidden layer; 0 for a linear head."""
    head_dropout: float = 0.1
    """Dropout in the head."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.loss_weight <= 0:
            raise OptionError(self, "loss_weight", f"is {self.loss_weight}, expected more than 0.")
        if self.head_width < 0:
            raise OptionError(self, "head_width", f"is {self.head_width}, expected 0 or more.")
        for name in ("smoothing", "head_dropout"):
            if not 0 <= getattr(self, name) < 1:
                problem = f"is {getattr(self, name)}, expected a share from 0 to less than 1."
                raise OptionError(self, name, problem)
