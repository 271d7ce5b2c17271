from __future__ import annotations

from pathlib import Path

from heterformer.finetuning.curve import CurvePoint, LearningCurve
from heterformer.finetuning.figure import STYLES, draw_curve
from tests.pictures import check_picture


def test_a_panel_for_each_metric(tmp_path: Path) -> None:
    points = tuple(
        CurvePoint(method, fraction, round(1000 * fraction), {"micro": 0.5 + fraction / 3, "macro": 0.4})
        for method in STYLES
        for fraction in (0.01, 0.1, 1.0)
    )
    check_picture(draw_curve(LearningCurve("run", "paper", points), tmp_path / "curve.png"))


def test_without_text(tmp_path: Path) -> None:
    """A textless type has no curve of text alone."""
    point = CurvePoint("fine-tuned", 1.0, 10, {"micro": 0.5, "macro": 0.5})
    check_picture(draw_curve(LearningCurve("run", "author", (point,)), tmp_path / "curve.png"))
