"""The learning curve: the test part's metrics against the number of labels."""

from __future__ import annotations

from pathlib import Path

from heterformer.figures import COLORS, GREY, HIGHLIGHT, figure
from heterformer.finetuning.curve import LearningCurve, Method
from heterformer.metrics import CLASSIFICATION_METRICS

STYLES: dict[Method, tuple[str, str]] = {
    "fine-tuned": (HIGHLIGHT, "o"),
    "text only, fine-tuned": (COLORS[0], "s"),
    "fixed vectors": (GREY, "D"),
}


def draw_curve(curve: LearningCurve, path: Path) -> Path:
    """Draw a panel for each metric."""
    counts = sorted({point.labels for point in curve.points})
    with figure(path, 2.0, columns=len(CLASSIFICATION_METRICS)) as (drawing, panels):
        for panel, metric in zip(panels, CLASSIFICATION_METRICS, strict=True):
            for method, (color, marker) in STYLES.items():
                if points := curve.of_method(method):
                    labels = [point.labels for point in points]
                    heights = [point.metrics[metric.name] for point in points]
                    panel.plot(labels, heights, color=color, marker=marker, label=method)
            panel.set_xscale("log")
            # The numbers themselves: a log scale's own labels are formulas, which figures do not set.
            panel.set_xticks(counts, [f"{count:,}" for count in counts], rotation=45)
            panel.minorticks_off()
            panel.set(title=metric.heading, xlabel="labels")
        methods = panels[0].get_legend_handles_labels()
        drawing.legend(*methods, loc="outside upper center", ncols=len(STYLES), fontsize=6, frameon=False)
    return path
