"""What vectors are worth: link prediction, classification, clustering."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heterformer.evaluation.core import Evaluation, evaluate, evaluate_vectors

__all__ = ["Evaluation", "evaluate", "evaluate_vectors"]
_MODULES = {"Evaluation": "core", "evaluate": "core", "evaluate_vectors": "core"}


def __getattr__(name: str) -> Any:
    """Import a public name on first use: PyTorch and Transformers take seconds."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
