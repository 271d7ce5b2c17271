"""Models: Heterformer, its parts, the baselines, and the contract that all models keep."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heterformer.models.configuration import HeterformerConfig, NodeEncoderConfig
    from heterformer.models.contract import NodeEncoder
    from heterformer.models.heterformer import Heterformer

__all__ = ["Heterformer", "HeterformerConfig", "NodeEncoder", "NodeEncoderConfig"]

MODULES = {
    "Heterformer": "heterformer",
    "HeterformerConfig": "configuration",
    "NodeEncoder": "contract",
    "NodeEncoderConfig": "configuration",
}


def __getattr__(name: str) -> Any:
    """Models are imported when they are asked for: PyTorch and Transformers take seconds."""
    if name in MODULES:
        return getattr(import_module(f"{__name__}.{MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
