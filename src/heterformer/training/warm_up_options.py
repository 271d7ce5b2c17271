"""Options of the warm-up of textless nodes. Each option has one sentence, which is also its help text."""

from __future__ import annotations

from dataclasses import dataclass

from heterformer.options import check_above


@dataclass(frozen=True)
class WarmUpOptions:
    """The warm-up of textless nodes (Eq. 10), for all models that have vectors of them."""

    warm_up: bool = True
    """Warm up textless embeddings on the frozen backbone's vectors before training."""
    warm_up_epochs: int = 30
    """Maximum number of passes over the edges of textless nodes."""
    warm_up_batch_size: int = 512
    """Edges per warm-up step; their texts are each other's negatives."""
    warm_up_learning_rate: float = 0.01
    """Learning rate of the warm-up."""
    warm_up_patience: int = 3
    """Number of passes without a better validation score after which the warm-up stops."""

    def __post_init__(self) -> None:
        positive = ("epochs", "batch_size", "learning_rate", "patience")
        check_above(self, {f"warm_up_{name}": 0 for name in positive})
