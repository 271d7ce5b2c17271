from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from heterformer.comparison.curves import Curve, draw_curves, validation_curve
from heterformer.figures import figure
from heterformer.training.run import Run


def run(path: Path, precs: dict[int, float]) -> Run:
    path.mkdir()
    (path / "config.yaml").write_text("")  # what makes it a run
    found = Run(path)
    for step, prec in precs.items():
        found.log(step=step, loss=1.0)
        found.log(step=step, validation={"prec": prec, "mrr": 0.0, "ndcg": 0.0})
    return found


def test_a_curve_is_the_mean_of_the_seeds_at_the_steps_all_have(tmp_path: Path) -> None:
    first = run(tmp_path / "0", {10: 0.1, 20: 0.2, 30: 0.3})
    second = run(tmp_path / "1", {10: 0.3, 20: 0.2})
    curve = validation_curve([first, second])
    assert curve.steps == [10, 20]
    assert curve.mean == pytest.approx([0.2, 0.2])
    assert curve.deviation == pytest.approx([np.std([0.1, 0.3], ddof=1), 0])


def test_one_seed_has_no_band(tmp_path: Path) -> None:
    curve = validation_curve([run(tmp_path / "0", {10: 0.1, 20: 0.2})])
    assert curve.deviation.tolist() == [0, 0]


def test_a_line_and_a_name_for_each_curve(tmp_path: Path) -> None:
    long, short = (
        Curve(list(steps), np.linspace(0, 0.5, len(steps)), np.zeros(len(steps)))
        for steps in ((1, 2, 3), (1, 2))
    )
    with figure(tmp_path / "figure.png", 2.0) as (_, (axes,)):
        draw_curves(axes, {"long": long, "short": short}, {"long": "#000000", "short": "#0072B2"}, [short])
        assert [text.get_text() for text in axes.texts] == ["long", "short"]
        assert len(axes.lines) == 3
        assert len({line.get_marker() for line in axes.lines}) == 3
        dotted = [c for c in axes.collections if c.get_linestyle()[0][1] is not None]
        assert len(dotted) == 1  # from the end of the short one to its name
