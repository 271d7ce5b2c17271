from __future__ import annotations

import io
import json
from dataclasses import replace

from rich.console import Console

from heterformer.evaluation.link_prediction import FullRanking, LinkPrediction
from heterformer.evaluation.link_prediction_table import as_json, link_prediction_table, relations_table
from heterformer.ranking import RankingMetrics


def result(part: str, figure: float, relation: str = "cites") -> LinkPrediction:
    """Figures of which no two are alike."""
    return LinkPrediction(
        relation=relation,
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


SHEET = link_prediction_table(ROWS, "link prediction on aan")


def test_one_row_per_model_and_part() -> None:
    assert [row[:2] for row in SHEET.rows] == [
        ("Heterformer", "validation"),
        ("Heterformer", "test"),
        ("text only", "validation"),
        ("text only", "test"),
    ]
    assert SHEET.rows[1][2:] == (".2000", ".2100", ".2200", ".2300", ".2400", ".2500", ".2600")


def test_the_table_says_among_how_many_was_ranked() -> None:
    assert SHEET.headings[2:] == ("PREC", "MRR", "NDCG", "full MRR", "Hits@1", "@10", "@100")
    assert "among the keys of at most 100 pairs" in SHEET.note  # there are only 20
    many = replace(result("test", 0.1), pairs=100)
    assert "among the keys of 100 pairs" in relations_table([many], [], "links").note
    assert "among all 12,345 candidates" in SHEET.note


def test_all_columns_fit_into_eighty_characters() -> None:
    output = io.StringIO()
    many = replace(result("validation", 0.1, "published_in"), pairs=123_456)
    relations = relations_table([many], ["published_in"], "links")
    for sheet in (SHEET, relations):
        Console(file=output, width=80).print(sheet.table())
    assert "…" not in output.getvalue()
    assert ".1600" in output.getvalue()


def test_relations_are_told_apart_and_those_that_training_saw_are_marked() -> None:
    results = [result("test", 0.2), result("test", 0.3, "written_by"), result("test", 0.4, "published_in")]
    sheet = relations_table(results, ["written_by"], "link prediction")
    assert sheet.headings[:4] == ("relation", "part", "pairs", "among")
    assert [row[:4] for row in sheet.rows] == [
        ("cites", "test", "20", "12,345"),
        ("†written_by", "test", "20", "12,345"),
        ("published_in", "test", "20", "12,345"),
    ]
    assert sheet.rows[1][4:] == (".3000", ".3100", ".3200", ".3300", ".3400", ".3500", ".3600")
    saw = "†: training saw these pairs, those of held-out nodes excepted"
    assert f"{saw} (--split.also written_by would hide them)" in sheet.note
    assert "†" not in relations_table(results, [], "link prediction").note


def test_json_has_every_figure_under_its_relation_and_part() -> None:
    values = json.loads(json.dumps(as_json([*ROWS["Heterformer"], result("test", 0.3, "written_by")])))
    assert {name: list(parts) for name, parts in values.items()} == {
        "cites": ["validation", "test"],
        "written_by": ["test"],
    }
    assert values["cites"]["test"] == {
        "relation": "cites",
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
