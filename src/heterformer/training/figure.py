"""The figure of a single run: its training loss and its validation curve."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from heterformer.figures import COLORS, GREY, HIGHLIGHT, figure
from heterformer.metrics import metric_heading
from heterformer.training.run import Run

SMOOTHED = 20  # points of the smoothed loss curve


def draw_run(run: Run, out: Path) -> list[Path]:
    """``training.png``: what the metrics allow; nothing without a step."""
    run.config()  # or it is no run
    lines = run.metrics()
    losses = [(line["step"], line["loss"]) for line in lines if "loss" in line]
    evaluations = [(line["step"], line["validation"]) for line in lines if "validation" in line]
    before = [(line["step"], line["before_training"]) for line in lines if "before_training" in line]
    if not losses:
        return []
    from matplotlib.ticker import MaxNLocator  # takes a while

    path = out / "training.png"
    with figure(path, 1.8, columns=2) as (_, (left, right)):
        steps, values = map(np.array, zip(*losses, strict=True))
        left.plot(steps, values, color=GREY, linewidth=0.5, alpha=0.6)
        parts = [part for part in np.array_split(np.arange(len(steps)), SMOOTHED) if len(part)]
        left.plot([steps[p].mean() for p in parts], [values[p].mean() for p in parts], color=HIGHLIGHT)
        title = "training loss, and its mean" if len(steps) > SMOOTHED else "training loss"
        left.set(title=title, xlabel="steps")
        for metric, color in zip(_shown_metrics(run), COLORS, strict=False):
            if evaluations:
                points = [(step, values[metric]) for step, values in before + evaluations]
                at, heights = zip(*points, strict=True)
                right.plot(at, heights, color=color, marker="o", markersize=2.2)
                right.annotate(
                    metric_heading(metric),
                    (evaluations[-1][0], heights[-1]),
                    (0, 4),
                    textcoords="offset points",
                    color=color,
                    ha="right",
                    fontsize=7,
                )
        right.set(title="validation", xlabel="steps")
        right.margins(y=0.15)
        if evaluations:
            best = max(evaluations, key=lambda evaluation: evaluation[1][run.options().watched])[0]
            right.axvline(best, color=GREY, linewidth=0.8, linestyle=":")
            corner = {"xycoords": right.get_xaxis_transform(), "textcoords": "offset points"}
            side, offset = ("right", -2) if 2 * best > evaluations[-1][0] else ("left", 2)  # where room is
            right.annotate(f"best: step {best:,}", (best, 0.02), (offset, 0), ha=side, fontsize=6.5, **corner)
        for axis in (left, right):
            axis.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    return [path]


def _shown_metrics(run: Run) -> tuple[str, ...]:
    """The metric that early stopping watched, drawn last and so on top, and another one of its task."""
    options = run.options()
    others = [name for name in options.watchable if name != options.watched]
    return (*others[:1], options.watched)
