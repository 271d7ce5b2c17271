"""Classification and clustering of one run of a comparison: the paper's Tables 4 to 6."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heterformer.comparison.options import ComparisonOptions
from heterformer.files import reading, write_text
from heterformer.metrics import CLASSIFICATION_METRICS, CLUSTERING_METRICS
from heterformer.precision import precision_of_vectors

if TYPE_CHECKING:
    from heterformer.evaluation.open_run import OpenRun

LABELS = "labels.json"
CLUSTERS = "clusters"  # in the place of a setting
HEADINGS = {metric.name: metric.heading for metric in (*CLASSIFICATION_METRICS, *CLUSTERING_METRICS)}


@dataclass(frozen=True)
class LabelResult:
    """What a run's vectors tell of classes. Names are ``TYPE.SETTING.METRIC``."""

    options: dict[str, Any]
    figures: dict[str, float] = field(default_factory=dict)
    repeats: dict[str, list[float]] = field(default_factory=dict)
    """The values that a figure is the mean of: one of each division, or of each start of k-means."""
    test_to_train: dict[str, float] = field(default_factory=dict)
    """Nodes of the test part for each of the training part."""
    notes: list[str] = field(default_factory=list)

    @classmethod
    def open(cls, run: Path) -> LabelResult | None:
        """What is there of a run; nothing if it was never evaluated on labels."""
        if not (run / LABELS).is_file():
            return None
        with reading(run / LABELS):
            return cls(**json.loads((run / LABELS).read_text(encoding="utf-8")))


def label_name(node_type: str, setting: str, metric: str) -> str:
    """The name of a figure."""
    return f"{node_type}.{setting}.{metric}"


def label_heading(name: str) -> str:
    """Of a figure, for a sentence."""
    node_type, setting, metric = name.rsplit(".", 2)
    return f"{HEADINGS[metric]} of {node_type} ({'clustering' if setting == CLUSTERS else setting})"


def evaluate_labels(opened: OpenRun, options: ComparisonOptions) -> None:
    """Leave what the vectors of a run tell of classes in its folder; the vectors are made once and kept."""
    from heterformer.evaluation.core import evaluate_run
    from heterformer.evaluation.options import EvaluateOptions

    training = opened.run.options()
    label_options = EvaluateOptions(
        tasks=options.on_labels,
        precision=precision_of_vectors(training.precision),
        labels=options.labels,
        classification=options.classification,
        clustering=options.clustering,
        device=training.device,
    )
    evaluation, _ = evaluate_run(opened, label_options, for_map=False)
    result = LabelResult(options.label_values(), notes=evaluation.notes)
    for classified in evaluation.classification:
        train, _, test = classified.result.parts[0]
        for metric in CLASSIFICATION_METRICS:
            name = label_name(classified.node_type, classified.setting, metric.name)
            result.repeats[name] = list(classified.result.scores["mlp"][metric.name].values)
            result.test_to_train[name] = test / train
    for clustered in evaluation.clustering:
        for metric in CLUSTERING_METRICS:
            name = label_name(clustered.node_type, CLUSTERS, metric.name)
            result.repeats[name] = list(clustered.result.metrics[metric.name].values)
            result.test_to_train[name] = 0.0
    result.figures.update({name: sum(v) / len(v) for name, v in result.repeats.items()})
    write_text(opened.run.path / LABELS, json.dumps(asdict(result), indent=1))
