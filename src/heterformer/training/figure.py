"""The figure of a single run: its training loss and its validation curve."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from heterformer.figures import COLORS, GREY, HIGHLIGHT, figure
from heterformer.metrics import ranking_metric
from heterformer.training.run import Run

SMOOTHED = 20  # of the steps' losses there are so many points of the smooth line


def draw_run(run: Run, out: Path) -> list[Path]:
    """``training.png``: what the metrics allow; nothing without a step."""
    run.config()  # or it is no run
    lines = run.metrics()
    losses = [(line["step"], line["loss"]) for line in lines if "loss" in line]
    evaluations = [(line["step"], line["validation"]) for line in lines if "validation" in line]
    if not losses:
        return []
    path = out / "training.png"
    with figure(path, 1.8, columns=2) as (_, (left, right)):
        steps, values = map(np.array, zip(*losses, strict=True))
        left.plot(steps, values, color=GREY, linewidth=0.5, alpha=0.6)
        parts = [part for part in np.array_split(np.arange(len(steps)), SMOOTHED) if len(part)]
        left.plot([steps[p].mean() for p in parts], [values[p].mean() for p in parts], color=HIGHLIGHT)
        left.set(title="training loss", xlabel="steps")
        for metric, color in zip(map(ranking_metric, ("mrr", "prec")), COLORS, strict=False):
            if evaluations:
                heights = [values[metric.name] for _, values in evaluations]
                right.plot(
                    [step for step, _ in evaluations], heights, color=color, marker="o", markersize=2.2
                )
                right.annotate(
                    metric.heading,
                    (evaluations[-1][0], heights[-1]),
                    (0, 4),
                    textcoords="offset points",
                    color=color,
                    ha="right",
                    fontsize=7,
                )
        right.set(title="validation", xlabel="steps")
        right.margins(y=0.15)
    return [path]
