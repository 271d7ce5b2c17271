"""Progress of a training run, as a callback sees it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class TrainingProgress:
    """How far training is: what a callback of ``train`` is called with."""

    step: int
    """Steps so far, those of an earlier call included."""
    epoch: int
    """Epochs completed."""
    loss: float | None
    """The loss of this step; None where a resumed run only had to be validated."""
    seconds: float
    """Training time so far, without warm-up."""
    validation: dict[str, float] | None = None
    """PREC, MRR and NDCG of the validation pairs, if this step was validated."""
    is_best: bool = False
    """Whether that PREC is the best so far."""


Callback = Callable[[TrainingProgress], bool | None]
"""Called after every step; returning True stops training."""
