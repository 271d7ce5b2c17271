from __future__ import annotations

import io
import json
import re

from rich.console import Console

from heterformer.report.link_prediction_table import as_json, link_prediction_table
from heterformer.tasks.link_prediction import FullRanking, LinkPrediction
from heterformer.training.ranking import RankingMetrics


def result(part: str, figure: float) -> LinkPrediction:
    """Figures of which no two are alike."""
    return LinkPrediction(
        part=part,
        pairs=20,
        batch_size=100,
        in_batch=RankingMetrics(prec=figure, mrr=figure + 0.01, ndcg=figure + 0.02),
        full=FullRanking(20, 12345, figure + 0.03, {1: figure + 0.04, 10: figure + 0.05, 100: figure + 0.06}),
    )


ROWS = {
    "Heterformer": [result("validation", 0.1), result("test", 0.2)],
    "text only": [result("validation", 0.3), result("test", 0.4)],
}


def shown() -> list[str]:
    output = io.StringIO()
    Console(file=output, width=120).print(link_prediction_table(ROWS, "link prediction on aan"))
    return output.getvalue().splitlines()


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split("[│┃]", line)[1:-1]]


def test_one_row_per_model_and_part() -> None:
    rows = [cells(line) for line in shown() if line.startswith("│")]
    assert [row[:2] for row in rows] == [
        ["Heterformer", "validation"],
        ["Heterformer", "test"],
        ["text only", "validation"],
        ["text only", "test"],
    ]
    assert rows[1][2:] == ["0.2000", "0.2100", "0.2200", "0.2300", "0.2400", "0.2500", "0.2600"]


def test_the_table_says_among_how_many_was_ranked() -> None:
    (headings,) = (cells(line) for line in shown() if line.startswith("┃"))
    assert shown()[0].strip() == "link prediction on aan"
    assert headings[2:] == ["PREC", "MRR", "NDCG", "full MRR", "Hits@1", "@10", "@100"]
    caption = " ".join(" ".join(shown()[-3:]).split())
    assert "among the keys of 100 pairs" in caption
    assert "among all 12,345 candidates" in caption


def test_json_has_every_figure_under_its_part() -> None:
    values = json.loads(json.dumps(as_json(ROWS["Heterformer"])))
    assert list(values) == ["validation", "test"]
    assert values["test"] == {
        "part": "test",
        "pairs": 20,
        "batch_size": 100,
        "in_batch": {"prec": 0.2, "mrr": 0.21000000000000002, "ndcg": 0.22},
        "full": {
            "queries": 20,
            "candidates": 12345,
            "mrr": 0.23,
            "hits": {"1": 0.24000000000000002, "10": 0.25, "100": 0.26},
        },
    }
