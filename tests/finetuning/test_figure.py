from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from heterformer.finetuning.curve import CurvePoint, LearningCurve
from heterformer.finetuning.figure import STYLES, draw_curve
from tests.pictures import check_picture, drawings


def test_a_panel_for_each_metric(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = drawings(monkeypatch)
    points = tuple(
        CurvePoint(method, fraction, round(1000 * fraction), {"micro": 0.5 + fraction / 3, "macro": 0.4})
        for method in STYLES
        for fraction in (0.01, 0.1, 1.0)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # Matplotlib's, if there is no room for the panels
        check_picture(draw_curve(LearningCurve("run", "paper", points), tmp_path / "curve.png"))
    (drawing,) = made
    (legend,) = drawing.legends
    assert [text.get_text() for text in legend.get_texts()] == [*STYLES]
    beside = legend.get_window_extent()
    for panel in drawing.axes:
        ticks = [*panel.get_xticklabels(), *panel.get_xticklabels(minor=True)]
        assert [tick.get_text() for tick in ticks if tick.get_text()] == ["10", "100", "1,000"]
        area = panel.get_window_extent()
        assert area.width > drawing.bbox.width / 4
        assert not area.overlaps(beside)
        assert all(drawing.bbox.contains(*corner) for corner in area.corners())


def test_without_text(tmp_path: Path) -> None:
    """A textless type has no curve of text alone."""
    point = CurvePoint("fine-tuned", 1.0, 10, {"micro": 0.5, "macro": 0.5})
    check_picture(draw_curve(LearningCurve("run", "author", (point,)), tmp_path / "curve.png"))
