"""The metadata of a model card: what the Hub reads of a README.md."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from heterformer.files import CARD, reading
from heterformer.metrics import RANKING_METRICS, metric_heading
from heterformer.models.plm.minilm import HUB_NAME

FENCE = "---\n"
# Backbones whose name on the Hub and license are known without asking.
BASE_MODELS = {"minilm": "sentence-transformers/all-MiniLM-L6-v2"}
LICENSES = {
    "sentence-transformers/all-MiniLM-L6-v2": "apache-2.0",
    "bert-base-uncased": "apache-2.0",
    "google-bert/bert-base-uncased": "apache-2.0",
}
RANKING = tuple(metric.name for metric in RANKING_METRICS if metric.ranking == "in_batch")


@dataclass(frozen=True)
class CardFigures:
    """The figures of one part of a split, for the card's ``model-index``."""

    part: str
    network: str
    values: Mapping[str, float]
    """By the names of metrics that a training validates."""

    def result(self) -> dict[str, Any]:
        """An entry of the ``model-index``."""
        links = all(name in RANKING for name in self.values)
        metrics = [
            {"type": name, "name": metric_heading(name) + " (in-batch)" * links, "value": round(value, 4)}
            for name, value in self.values.items()
        ]
        return {
            "task": {"type": "graph-ml", "name": "Link prediction" if links else "Node prediction"},
            "dataset": {"type": dataset_id(self.network), "name": self.network, "split": self.part},
            "metrics": metrics,
        }


def metadata(library: str, backbone: str, name: str, tags: list[str], figures: CardFigures) -> dict[str, Any]:
    """What a new card says of a model.

    A backbone in a folder has no name on the Hub, and a license that we do not know.
    """
    base = BASE_MODELS.get(backbone, backbone)
    known = base in LICENSES or (HUB_NAME.fullmatch(base) is not None and "/" in base)
    values: dict[str, Any] = {"library_name": library, "license": LICENSES.get(base, "unknown")}
    if known:
        values["base_model"] = base
    return values | {
        "pipeline_tag": "feature-extraction",
        "datasets": [dataset_id(figures.network)],
        "tags": tags,
        "model-index": [{"name": name, "results": [figures.result()]}],
    }


def dataset_id(network: str) -> str:
    """A network's name as the Hub allows it."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", network).strip("-.") or "network"


def front_matter(values: Mapping[str, Any]) -> str:
    """The metadata as a card begins."""
    return FENCE + yaml.safe_dump(dict(values), sort_keys=False, allow_unicode=True) + FENCE


def with_metadata(card: str, changes: Mapping[str, Any], figures: CardFigures | None = None) -> str:
    """A card with changed metadata and, first in its ``model-index``, further figures."""
    values: dict[str, Any] = {}
    body = card
    if card.startswith(FENCE):
        head, _, body = card.removeprefix(FENCE).partition(FENCE)
        with reading(Path(CARD)):
            values = dict(yaml.safe_load(head) or {})
    values |= changes
    if figures is not None and values.get("model-index"):
        results = values["model-index"][0]["results"]
        others = [r for r in results if r["dataset"].get("split") != figures.part]
        values["model-index"][0]["results"] = [figures.result(), *others]
    return front_matter(values) + body
