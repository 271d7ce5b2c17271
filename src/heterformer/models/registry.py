"""The twelve models by the names of the command line; a model's module is imported when it is asked for."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

from heterformer.errors import InputError
from heterformer.network.schema import Schema

if TYPE_CHECKING:
    from heterformer.models.contract import NodeEncoder

ModelName = Literal[
    "heterformer",
    "mean_sage",
    "bert",
    "bert_mean_sage",
    "bert_max_sage",
    "bert_gat",
    "graph_formers",
    "bert_rgcn",
    "bert_han",
    "bert_hgt",
    "bert_shgn",
    "graph_formers_plus",
]
PREFIX = "heterformer_"  # of a baseline's model_type in config.json, since Transformers has a "bert" already


class _Entry(NamedTuple):
    display_name: str  # the paper's
    class_name: str
    package: str = "heterformer.models.baselines"


_ENTRIES: dict[ModelName, _Entry] = {
    "heterformer": _Entry("Heterformer", "Heterformer", "heterformer.models"),
    "mean_sage": _Entry("MeanSAGE", "MeanSage"),
    "bert": _Entry("BERT", "Bert"),
    "bert_mean_sage": _Entry("BERT+MeanSAGE", "BertMeanSage"),
    "bert_max_sage": _Entry("BERT+MaxSAGE", "BertMaxSage"),
    "bert_gat": _Entry("BERT+GAT", "BertGat"),
    "graph_formers": _Entry("GraphFormers", "GraphFormers"),
    "bert_rgcn": _Entry("BERT+RGCN", "BertRgcn"),
    "bert_han": _Entry("BERT+HAN", "BertHan"),
    "bert_hgt": _Entry("BERT+HGT", "BertHgt"),
    "bert_shgn": _Entry("BERT+SHGN", "BertShgn"),
    "graph_formers_plus": _Entry("GraphFormers++", "GraphFormersPlus"),
}
DISPLAY_NAMES: dict[str, str] = {name: entry.display_name for name, entry in _ENTRIES.items()}


class _Models(Mapping[str, "type[NodeEncoder]"]):
    """Looks like a dictionary of classes."""

    def __getitem__(self, name: str) -> type[NodeEncoder]:
        entry = _ENTRIES[cast(ModelName, name)]
        model: type[NodeEncoder] = getattr(import_module(f"{entry.package}.{name}"), entry.class_name)
        return model

    def __iter__(self) -> Iterator[str]:
        return iter(_ENTRIES)

    def __len__(self) -> int:
        return len(_ENTRIES)


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
    path = Path(folder) / "config.json"
    try:
        model_type = json.loads(path.read_text(encoding="utf-8"))["model_type"]
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"{folder}: expected a model's folder, with a config.json in it.") from None
    name = str(model_type).removeprefix(PREFIX)
    if name not in _ENTRIES:
        raise InputError(f"{path}: model_type is {model_type!r}, expected one of {', '.join(_ENTRIES)}.")
    return name
