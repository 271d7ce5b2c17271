"""Networks that we know how to build, and synthetic ones whose truth is known.

``heterformer dataset`` and ``heterformer synth`` build them; what a script needs besides is here. Each
name is imported on first use.

Example:
    >>> from heterformer import datasets
    >>> datasets.write_shop("shop")
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heterformer.datasets.synthetic_ceiling import planted_ceiling
    from heterformer.datasets.synthetic_shop import write_shop
    from heterformer.datasets.synthetic_words import AMBIGUOUS

__all__ = ["AMBIGUOUS", "planted_ceiling", "write_shop"]

_MODULES = {
    "AMBIGUOUS": "synthetic_words",
    "planted_ceiling": "synthetic_ceiling",
    "write_shop": "synthetic_shop",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
