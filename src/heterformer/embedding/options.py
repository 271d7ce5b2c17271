"""What a user can choose about vectors. Each option has one sentence, which is also its help text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from heterformer.errors import OptionError

Precision = Literal["float32", "bf16"]


@dataclass(frozen=True)
class EmbedOptions:
    """Which vectors to make, and from what."""

    types: tuple[str, ...] = ()
    """Only these node types; all of them unless given."""
    all_neighbors: int | None = None
    """Take all neighbours of a node, up to so many of each type, instead of the training's sample size."""
    dtype: Literal["float32", "float16"] = "float32"
    """Precision of the written vectors."""
    states_dtype: Literal["float32", "float16"] = "float32"
    """Precision of the texts' states on disk in between; float16 takes half the space and rounds."""
    precision: Precision = "float32"
    """Precision of matrix products; bf16 is faster where the processor has it, and rounds."""
    states: Literal["shared", "own"] = "shared"
    """Of several processes: one file of texts' states for all, or each computes those that its nodes need."""
    h0: bool = False
    """Also write textless nodes' own short embeddings, in a column or array h0; always, if some were new."""
    seed: int = 0
    """Seed of the neighbour sample."""

    def __post_init__(self) -> None:
        if self.all_neighbors is not None and self.all_neighbors < 1:
            raise OptionError(self, "all_neighbors", f"is {self.all_neighbors}, expected at least 1.")
