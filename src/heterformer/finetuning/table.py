"""The results of fine-tuning as tables."""

from __future__ import annotations

from heterformer.finetuning.core import FinetuneResult
from heterformer.finetuning.curve import LearningCurve
from heterformer.metrics import CLASSIFICATION_METRICS, metric_heading
from heterformer.tables import Sheet, four_digits


def result_table(result: FinetuneResult) -> Sheet:
    """A row for each held-out part."""
    names = list(result.metrics["test"])
    rows = tuple(
        (part, f"{result.nodes[part]:,}", *(_cell(values[name]) for name in names))
        for part, values in result.metrics.items()
    )
    what = f"{len(result.classes)} classes" if result.temperature is not None else f"{result.classes[0]!r}"
    note = f"learnt from {result.nodes['train']:,} labelled nodes, started from {result.start}"
    if result.calibration_error is not None:
        before, after = (four_digits(result.calibration_error[when]) for when in ("before", "after"))
        note += f". Expected calibration error of the test part: {before}, with temperature "
        note += f"{result.temperature:.2f}, chosen on the validation part, {after}"
    headings = ("part", "nodes", *map(metric_heading, names))
    return Sheet(f"{result.task} of {result.node_type} nodes: {what}", headings, rows, note, text_columns=1)


def _cell(value: float) -> str:
    return four_digits(value) if abs(value) < 1 else f"{value:.4g}"


def curve_table(curve: LearningCurve) -> Sheet:
    """A row for each method and share of the labels."""
    names = [metric.name for metric in CLASSIFICATION_METRICS]
    rows = tuple(
        (p.method, f"{p.fraction:.3g}", f"{p.labels:,}", *(_cell(p.metrics[name]) for name in names))
        for p in curve.points
    )
    note = "test part; all methods have the same nodes. Fixed vectors: the paper's MLP on the run's vectors"
    headings = ("method", "share of labels", "labels", *map(metric_heading, names))
    return Sheet(f"classes of {curve.node_type} nodes from few labels", headings, rows, note, text_columns=1)
