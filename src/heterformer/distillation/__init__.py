"""Text-only students of trained models, for queries, new items and machines without the network."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heterformer.distillation.core import Distillation
    from heterformer.distillation.entry import distill

__all__ = ["Distillation", "distill"]
_MODULES = {"Distillation": "core", "distill": "entry"}


def __getattr__(name: str) -> Any:
    """Import a public name on first use: PyTorch and Transformers take seconds."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
