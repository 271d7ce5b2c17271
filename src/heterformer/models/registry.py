"""The twelve models by name; a model's module is imported when it is asked for."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from heterformer.errors import InputError
from heterformer.models.options import MODEL_OPTIONS
from heterformer.network.schema import Schema
from heterformer.untrusted import checked_path, short_repr

if TYPE_CHECKING:
    from heterformer.models.contract import NodeEncoder


class _Models(Mapping[str, "type[NodeEncoder]"]):
    """A dictionary of classes, each imported when it is looked up."""

    def __getitem__(self, name: str) -> type[NodeEncoder]:
        module, _, class_name = MODEL_OPTIONS[name].path.partition(":")
        model: type[NodeEncoder] = getattr(import_module(module), class_name)
        return model

    def __iter__(self) -> Iterator[str]:
        return iter(MODEL_OPTIONS)

    def __len__(self) -> int:
        return len(MODEL_OPTIONS)


MODELS: Mapping[str, type[NodeEncoder]] = _Models()


def load_model(folder: Path | str) -> NodeEncoder:
    """Open a trained model: Heterformer or a baseline, whichever the folder holds.

    Args:
        folder: A run folder that ``train`` completed, or one that ``save_pretrained`` wrote.

    Example:
        >>> from heterformer import load_model
        >>> model = load_model("runs/papers")
        >>> model.encode("graph attention networks").shape
        (384,)
    """
    return MODELS[model_name(folder)].from_pretrained(folder)


def untrained_model(folder: Path | str, tables: bool = True) -> NodeEncoder:
    """A model as a folder's ``config.json`` describes it; its weights are yet to be loaded.

    Without ``tables``, those of textless nodes are empty.
    """
    from heterformer.models.plm.loading import load_config

    model = MODELS[model_name(folder)]
    config = load_config(model.config_class, folder)
    if not tables:
        schema = Schema.from_dict(config.schema)
        counts = {t: 0 if t in schema.textless else n for t, n in schema.counts.items()}
        config.schema = replace(schema, counts=counts).to_dict()
    return model(config)


def model_name(folder: Path | str) -> str:
    """The registered name of the model in a folder."""
    path = checked_path(folder, "the model") / "config.json"
    try:
        model_type = json.loads(path.read_text(encoding="utf-8"))["model_type"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise InputError(f"{folder}: expected a model's folder, with a config.json in it.") from None
    names = {options.model_type(): name for name, options in MODEL_OPTIONS.items()}
    if model_type not in list(names):
        expected = f"expected one of {', '.join(names)}, which 'train' saves"
        raise InputError(f"{path}: model_type is {short_repr(model_type)}, {expected}.")
    return names[model_type]
