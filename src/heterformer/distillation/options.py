"""Options of a distillation. Each option has one sentence, which is also its help text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from heterformer.errors import OptionError
from heterformer.options import check_at_least, check_seed


@dataclass(frozen=True)
class DistillOptions:
    """How long a student learns, and from what."""

    epochs: int = 3
    """Number of passes over the training pairs; the student that validates best is kept."""
    max_steps: int | None = None
    """Maximum number of training steps."""
    batch_size: int = 64
    """Training pairs per step, and as many texts of other nodes."""
    negatives: int = 1024
    """Stored vectors of further nodes, drawn for each step, that a query is ranked against."""
    ranking_weight: float = 1.0
    """Weight of the ranking loss beside the regression to the stored vectors."""
    learning_rate: float = 5e-5
    """Learning rate of the encoder, which falls to 0 in a line after a short rise."""
    seed: int = 0
    """Seed of batches and dropout."""
    onnx: bool = False
    """Also export the encoder to onnx/model.onnx and check its vectors."""
    device: Literal["auto", "cpu"] = "auto"
    """Where to compute: a GPU if there is one, or the CPU."""
    json: bool = False
    """Print JSON instead of a table."""

    def __post_init__(self) -> None:
        least = {"epochs": 1, "max_steps": 1, "batch_size": 2, "negatives": 0, "ranking_weight": 0}
        check_seed(self)
        check_at_least(self, least)
        if not self.learning_rate > 0:
            problem = f"is {self.learning_rate}, expected a positive number."
            raise OptionError(self, "learning_rate", problem)
