"""Why a node's vector is what it is: attention and the neighbours behind it."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heterformer.explanation.core import Explanation, explain
    from heterformer.explanation.effects import LeaveOneOut, leave_one_out

__all__ = ["Explanation", "LeaveOneOut", "explain", "leave_one_out"]
_MODULES = {
    "Explanation": "core",
    "LeaveOneOut": "effects",
    "explain": "core",
    "leave_one_out": "effects",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use: PyTorch and Transformers take seconds."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
