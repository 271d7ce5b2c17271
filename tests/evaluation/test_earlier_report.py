"""What is taken over from an earlier report; how tasks are joined is tested with the report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from heterformer.evaluation.earlier_report import EarlierReport
from heterformer.evaluation.options import EvaluateOptions


@pytest.mark.parametrize(
    "content", [None, "{", "[]", "{}", '{"evaluation": {}}', '{"evaluation": {"options": {}}}']
)
def test_what_does_not_say_how_it_was_made_is_no_report(content: str | None, tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    if content is not None:
        path.write_text(content)
    assert EarlierReport.open(path) is None


def test_a_report_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text(json.dumps({"evaluation": {"options": {"tasks": []}}}))
    report = EarlierReport.open(path)
    assert report is not None
    assert report.figures(EvaluateOptions()) == []


def test_a_report_names_no_figures_elsewhere(tmp_path: Path) -> None:
    run = tmp_path / "run"
    (run / "figures").mkdir(parents=True)
    for path in (tmp_path / "map.png", run / "figures" / "map.png"):
        path.write_text("")
    names = ["figures/map.png", "../map.png", str(tmp_path / "map.png"), "figures/../../map.png", 7]
    report = EarlierReport(run / "report.json", {"figures": names})
    assert report.figures(EvaluateOptions()) == [run / "figures" / "map.png"]
    assert report.figures(EvaluateOptions(tasks=("clustering",))) == []
