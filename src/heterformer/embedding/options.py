"""Options of embedding a network. Each option has one sentence, which is also its help text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from heterformer.options import check_at_least, check_seed
from heterformer.precision import Precision


@dataclass(frozen=True)
class EmbedOptions:
    """Which vectors to compute, from which neighbours, in which precision."""

    types: tuple[str, ...] = ()
    """Embed nodes of these types; by default, of all types."""
    all_neighbors: int | None = None
    """Use all neighbours of a node, up to this number of each type, instead of a sample as in training."""
    width: int | None = None
    """Cut vectors to this length, one of the model's widths, and scale them again as the model does."""
    dtype: Literal["float32", "float16"] = "float32"
    """Data type of the written vectors."""
    states_dtype: Literal["float32", "float16"] = "float32"
    """Data type of the text states, which are kept on disk meanwhile; float16 halves the space and rounds."""
    precision: Precision = "auto"
    """Precision of matrix products; bf16 rounds, and 'auto' is bf16 where the processor has instructions for
    it, or the precision of the vectors that are continued."""
    states: Literal["shared", "own"] = "shared"
    """With several processes: share one file of text states, or let each compute those that it needs."""
    h0: bool = False
    """Also write the short embeddings of textless nodes, as h0; always, if some nodes were folded in."""
    seed: int = 0
    """Seed for sampling neighbours."""

    def __post_init__(self) -> None:
        check_seed(self)
        check_at_least(self, {"all_neighbors": 1})
