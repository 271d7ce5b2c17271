"""How the texts of a backbone are to be read, as far as its files say so.

A folder of sentence-transformers names its pooling, whether vectors are normalised, and prompts; a trained
model of ours has options. Where the files say nothing, ``models/plm/inspection.py`` looks at texts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from heterformer.errors import InputError
from heterformer.models.plm.minilm import backbone_path, trained_config
from heterformer.untrusted import is_inside

ReadJson = Callable[[str], Any]  # from a file's name in the backbone's folder to its contents, if it is there

NORMALIZED_TEMPERATURE = 0.05  # that suits vectors of length 1
PAPER: Mapping[str, Any] = MappingProxyType(
    {
        "neighbor_pooling": "cls",
        "readout": "cls",
        "normalize": "no",
        "temperature": 1.0,
        "query_prompt": "",
        "document_prompt": "",
    }
)
"""How the paper reads BERT."""
QUERY_PROMPTS = ("query",)
DOCUMENT_PROMPTS = ("document", "passage", "corpus")


def suited_options(backbone: str) -> dict[str, Any]:
    """The options that suit a backbone as far as a folder tells; the paper's for the rest."""
    return {**PAPER, **declared_options(backbone)}


def declared_options(backbone: str) -> dict[str, Any]:
    """The options that the files in a backbone's folder decide."""
    try:
        folder = Path(backbone_path(backbone))
    except InputError:  # not installed, which loading it reports
        return {}
    if not backbone:  # no name: it is not the current folder
        return {}
    if (trained := trained_config(folder)) is not None:
        return _as_trained(trained)
    return sentence_transformers_options(lambda name: _json(folder / name))


def _as_trained(config: Mapping[str, Any]) -> dict[str, Any]:
    """A trained model of ours is read as it was trained."""
    readout = config.get("readout", "cls")
    return {
        "neighbor_pooling": config.get("neighbor_pooling", readout),
        "readout": readout,
        "normalize": "yes" if config.get("normalize") else "no",
        "temperature": config.get("temperature", 1.0),
        "query_prompt": config.get("query_prompt", ""),
        "document_prompt": config.get("document_prompt", ""),
    }


def sentence_transformers_options(read: ReadJson) -> dict[str, Any]:
    """What ``modules.json`` and ``config_sentence_transformers.json`` decide; nothing if they are not there.

    A pooling that no readout of ours equals is left open. If it is [CLS], what neighbours are given is left
    open too: it is known of the last layer alone.
    """
    modules = _modules(read("modules.json"))
    if not modules:
        return {}
    prompts = read("config_sentence_transformers.json")
    values: dict[str, Any] = _prompts(prompts if isinstance(prompts, Mapping) else {})
    pooling = next((path for kind, path in modules if kind == "Pooling"), None)
    if pooling is None or (readout := _readout(read(f"{pooling}/config.json"))) is None:
        return values
    normalize = any(kind == "Normalize" for kind, _ in modules)
    values |= {"readout": readout, "normalize": "yes" if normalize else "no"}
    values["temperature"] = NORMALIZED_TEMPERATURE if normalize else 1.0
    return values | ({"neighbor_pooling": "mean"} if readout == "mean" else {})


def _modules(values: Any) -> list[tuple[str, str]]:
    """The kind and the folder of each module, in their order."""
    modules = []
    for value in values if isinstance(values, list) else ():
        path = value.get("path") if isinstance(value, dict) else None
        if not isinstance(path, str) or not is_inside(path):
            return []
        modules.append((str(value.get("type", "")).rpartition(".")[2], path))
    return modules


def _readout(pooling: Any) -> str | None:
    """The readout that equals a pooling; none if it is another one, or several at once."""
    if not isinstance(pooling, dict):
        return None
    modes = [name for name, on in pooling.items() if name.startswith("pooling_mode_") and on is True]
    readouts = {"pooling_mode_cls_token": "cls", "pooling_mode_mean_tokens": "mean"}
    return readouts.get(modes[0]) if len(modes) == 1 else None


def _prompts(config: Mapping[str, Any]) -> dict[str, Any]:
    """What is put before the texts of queries and of documents."""
    prompts = config.get("prompts")
    prompts = prompts if isinstance(prompts, dict) else {}
    usual = str(config.get("default_prompt_name"))

    def prompt(names: Sequence[str]) -> str:
        return str(next((prompts[name] for name in (*names, usual) if prompts.get(name)), ""))

    return {"query_prompt": prompt(QUERY_PROMPTS), "document_prompt": prompt(DOCUMENT_PROMPTS)}


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
