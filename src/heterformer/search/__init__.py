"""Search in the vectors of a run."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heterformer.search.searcher import Answer, Searcher

__all__ = ["Answer", "Searcher"]
_MODULES = {"Answer": "searcher", "Searcher": "searcher"}


def __getattr__(name: str) -> Any:
    """Import a public name on first use: PyTorch and Transformers take seconds."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
