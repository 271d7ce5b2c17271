"""Several models on the same pairs, side by side."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heterformer.comparison.core import compare
    from heterformer.comparison.results import Comparison

__all__ = ["Comparison", "compare"]
_MODULES = {"Comparison": "results", "compare": "core"}


def __getattr__(name: str) -> Any:
    """Import a public name on first use: PyTorch and Transformers take seconds."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
