from __future__ import annotations

from heterformer.metrics import RANKING_METRICS
from tests.distillation.students import tiny_distillation


def test_the_card_has_the_figures_of_both_readers_under_the_headings_of_all_tables() -> None:
    result = tiny_distillation()
    lines = (result.path / "README.md").read_text(encoding="utf-8").splitlines()
    heading = next(line for line in lines if line.startswith("| queries read by |"))
    names = [metric.name for metric in RANKING_METRICS]
    assert heading == f"| queries read by | {' | '.join(metric.heading for metric in RANKING_METRICS)} |"
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith(("| this", "| the model"))]
    assert [row[0] for row in rows] == ["this encoder", "the model"]
    for row, reader in zip(rows, ("student", "model"), strict=True):
        assert [float(cell) for cell in row[1:]] == [round(result.test[reader][name], 4) for name in names]
