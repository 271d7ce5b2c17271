"""Learning curves: validation PREC against steps, a line per variant and a band over its seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from heterformer.arrays import Float64s
from heterformer.figures import label_ends
from heterformer.metrics import metric_heading
from heterformer.training.run import Run

BANDS = 3
MARKERS = "osD^vPX"  # lines differ in more than their colours


@dataclass(frozen=True)
class Curve:
    """Means over seeds at the steps that all of them evaluated."""

    steps: list[int]
    mean: Float64s  # (steps,)
    deviation: Float64s  # (steps,), 0 for one seed


def validation_curve(runs: Sequence[Run]) -> Curve:
    """The validation PREC of several seeds of one variant."""
    each = [_validation_prec(run) for run in runs]
    steps = sorted(set(each[0]).intersection(*each[1:]))
    values = np.array([[scores[step] for step in steps] for scores in each])  # (seeds, steps)
    deviation = values.std(0, ddof=1) if len(each) > 1 else np.zeros(len(steps))
    return Curve(steps, values.mean(0), deviation)


def _validation_prec(run: Run) -> dict[int, float]:
    return {line["step"]: line["validation"]["prec"] for line in run.metrics() if "validation" in line}


def draw_curves(
    axes: Any, curves: Mapping[str, Curve], colors: Mapping[str, str], faint: Sequence[Curve] = ()
) -> None:
    """Lines with their names beside them, the first on top; ``faint`` ones have no name.

    Where there are many only the first has a band: bands upon bands say nothing.
    """
    for curve in faint:
        axes.plot(curve.steps, curve.mean, color="#CCCCCC", linewidth=0.8, zorder=1)
    last = max(curve.steps[-1] for curve in (*curves.values(), *faint))
    many = len(curves) > BANDS
    for number, (name, curve) in enumerate(curves.items()):
        style = {"marker": MARKERS[number % len(MARKERS)], "zorder": 3 - number / 10}
        if number == 0 or not many:
            low, high = np.maximum(curve.mean - curve.deviation, 0), curve.mean + curve.deviation
            axes.fill_between(curve.steps, low, high, color=colors[name], alpha=0.15, linewidth=0)
        width = 1.0 if many and number else 1.4
        axes.plot(curve.steps, curve.mean, color=colors[name], markersize=2.5, lw=width, **style)
        if curve.steps[-1] < last:  # stopped early: lead the eye to the name
            axes.hlines(curve.mean[-1], curve.steps[-1], last, color=colors[name], lw=0.7, ls=":")
    axes.set_xlabel("training steps")
    axes.set_ylabel(f"validation {metric_heading('prec')}")
    label_ends(axes, {name: float(curve.mean[-1]) for name, curve in curves.items()}, colors)
