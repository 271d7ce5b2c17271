from __future__ import annotations

from heterformer.finetuning.core import FinetuneResult
from heterformer.finetuning.curve import CurvePoint, LearningCurve
from heterformer.finetuning.table import curve_table, result_table

PARTS = {"train": 70, "validation": 10, "test": 20}


def test_classes() -> None:
    metrics = {"validation": {"micro": 0.5, "macro": 0.25}, "test": {"micro": 0.75, "macro": 0.5}}
    errors = {"before": 0.2, "after": 0.05}
    result = FinetuneResult(
        "out", "runs/papers", "classification", "paper", ("a", "b"), 1.0, PARTS, metrics, 1.5, errors
    )
    sheet = result_table(result)
    assert sheet.rows == (("validation", "10", ".5000", ".2500"), ("test", "20", ".7500", ".5000"))
    assert sheet.headings == ("part", "nodes", "micro F1", "macro F1")
    assert ".2000, with temperature 1.50, chosen on the validation part, .0500" in sheet.note


def test_numbers() -> None:
    metrics = {"test": {"r2": 0.5, "rmse": 12.345678, "mae": 3.0}}
    result = FinetuneResult("out", "runs/papers", "regression", "paper", ("year",), 1.0, PARTS, metrics)
    sheet = result_table(result)
    assert sheet.rows == (("test", "20", ".5000", "12.35", "3"),)
    assert "calibration" not in sheet.note
    assert "'year'" in sheet.title


def test_a_curve() -> None:
    points = tuple(
        CurvePoint(method, fraction, round(100 * fraction), {"micro": fraction, "macro": 0.1})
        for fraction in (0.05, 0.2)
        for method in ("fine-tuned", "fixed vectors")
    )
    curve = LearningCurve("run", "paper", points)
    sheet = curve_table(curve)
    assert sheet.rows[0] == ("fine-tuned", "0.05", "5", ".0500", ".1000")
    assert [point.fraction for point in curve.of_method("fixed vectors")] == [0.05, 0.2]
