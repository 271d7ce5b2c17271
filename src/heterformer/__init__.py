"""Heterformer: vectors for every node of a heterogeneous text-rich network."""

from typing import TYPE_CHECKING, Any

from heterformer.errors import InputError
from heterformer.network.store import Network

if TYPE_CHECKING:
    from heterformer.embedding.embed import embed
    from heterformer.models.heterformer import Heterformer
    from heterformer.models.registry import load_model

__all__ = ["Heterformer", "InputError", "Network", "embed", "load_model"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Models are imported when they are asked for: PyTorch and Transformers take seconds."""
    if name == "Heterformer":
        from heterformer.models.heterformer import Heterformer

        return Heterformer
    if name == "embed":
        from heterformer.embedding.embed import embed

        return embed
    if name == "load_model":
        from heterformer.models.registry import load_model

        return load_model
    raise AttributeError(f"module 'heterformer' has no attribute {name!r}")
