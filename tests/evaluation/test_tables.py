from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from heterformer.evaluation.classification import CLASSIFIERS, ClassificationResult
from heterformer.evaluation.clustering import ClusteringResult
from heterformer.evaluation.core import NodeClassification, NodeClustering
from heterformer.evaluation.link_prediction import LinkPrediction
from heterformer.evaluation.page import link_prediction_json
from heterformer.evaluation.tables import (
    classification_table,
    clustering_table,
    relations_table,
    widths_table,
)
from heterformer.metrics import (
    ALONE_WITH_LINKS_METRICS,
    CLASSIFICATION_METRICS,
    CLUSTERING_METRICS,
    QUERY_ALONE_METRICS,
    RANKING_METRICS,
    WITH_LINKS_METRICS,
    MetricSummary,
)


def figures(first: float) -> dict[str, float]:
    """Of which no two are alike."""
    return {metric.name: first + i / 100 for i, metric in enumerate(RANKING_METRICS)}


def result(part: str, figure: float, relation: str = "cites") -> LinkPrediction:
    """Of vectors from a file, which have one reading of queries only."""
    return LinkPrediction(
        relation=relation,
        part=part,
        pairs=20,
        batch_size=100,
        full_queries=20,
        candidates=12345,
        metrics=figures(figure),
        chance=figures(0.01),
        popularity=figures(0.02),
    )


def with_queries_alone(one: LinkPrediction, figure: float) -> LinkPrediction:
    more = {metric.name: figure + i / 100 for i, metric in enumerate(QUERY_ALONE_METRICS)}
    return replace(one, metrics=one.metrics | more)


SHEET = relations_table([result("validation", 0.1), result("test", 0.2)], [], "link prediction on aan")


def test_one_row_per_part() -> None:
    assert [row[1] for row in SHEET.rows] == ["valid.", "test", "popular", "chance"]
    assert SHEET.rows[1][4:] == (".2000", ".2100", ".2200", ".2300", ".2400", ".2500", ".2600")


def test_pairs_of_new_nodes_have_their_own_popularity_and_chance() -> None:
    results = [
        result("validation", 0.1),
        result("test", 0.2),
        replace(result("new", 0.3), chance=figures(0.5)),
    ]
    rows = relations_table(results, [], "link prediction").rows
    parts = ["valid.", "test", "popular", "chance", "new", "popular", "chance"]
    assert [row[1] for row in rows] == parts
    assert [rows[3][4], rows[6][4]] == [".0100", ".5000"]


def test_the_table_says_among_how_many_was_ranked() -> None:
    assert SHEET.headings[4:] == ("PREC", "MRR", "NDCG", "full MRR", "Hits@1", "@10", "@100")
    assert "among the different keys of at most 100 pairs" in SHEET.note  # there are only 20
    many = replace(result("test", 0.1), pairs=100)
    assert "among the different keys of 100 pairs" in relations_table([many], [], "links").note
    among = "the other metrics among all candidates, without the query's other true keys"
    assert (
        f"PREC, MRR and NDCG rank each key among the different keys of at most 100 pairs, {among}"
        in SHEET.note
    )


def test_all_columns_fit_into_eighty_characters() -> None:
    output = io.StringIO()
    many = replace(result("validation", 0.1, "published_in"), pairs=123_456)
    relations = relations_table([many], ["published_in"], "links")
    bare = relations_table([with_queries_alone(many, 0.5)], ["published_in"], "links")
    for sheet in (SHEET, relations, bare):
        Console(file=output, width=80).print(sheet.table())
    assert "…" not in output.getvalue()
    assert ".1600" in output.getvalue()


def test_relations_are_told_apart_and_those_that_training_saw_are_marked() -> None:
    results = [result("test", 0.2), result("test", 0.3, "written_by"), result("test", 0.4, "published_in")]
    sheet = relations_table(results, ["written_by"], "link prediction")
    assert sheet.headings[:4] == ("relation", "part", "pairs", "among")
    assert [row[:4] for row in sheet.rows if row[0]] == [
        ("cites", "test", "20", "12,345"),
        ("†written_by", "test", "20", "12,345"),
        ("published_in", "test", "20", "12,345"),
    ]
    assert sheet.rows[3][4:] == (".3000", ".3100", ".3200", ".3300", ".3400", ".3500", ".3600")
    saw = "†: training saw these pairs, except those of held-out nodes"
    assert f"{saw}; train with split.also set to written_by to hide them" in sheet.note
    left_out = "the query's other true keys are left out of the batch too"
    assert f"For relations besides the predicted one, {left_out}" in sheet.note
    assert "†" not in relations_table(results, [], "link prediction").note


def test_queries_read_alone_have_a_row_below_their_part() -> None:
    valid, test = result("validation", 0.1), with_queries_alone(result("test", 0.2), 0.5)
    sheet = relations_table([valid, test], [], "link prediction")
    assert [(row[0], row[1], row[2], row[4]) for row in sheet.rows] == [
        ("cites", "valid.", "20", ".1000"),
        ("cites", "test", "20", ".2000"),
        ("", "alone", "", ".5000"),
        ("", "popular", "", ".0200"),  # once for each relation
        ("", "chance", "", ".0100"),
    ]
    assert "alone: queries are read without their neighbours, as a search reads a text" in sheet.note
    assert "alone:" not in relations_table([valid], [], "link prediction").note


def with_links(one: LinkPrediction, figure: float) -> LinkPrediction:
    metrics = (*WITH_LINKS_METRICS, *(ALONE_WITH_LINKS_METRICS if one.query_alone else ()))
    more = {metric.name: figure + i / 100 for i, metric in enumerate(metrics)}
    return replace(one, metrics=one.metrics | more)


def test_full_rankings_with_links_have_rows_below_theirs() -> None:
    one = with_links(with_queries_alone(result("test", 0.2), 0.5), 0.7)
    sheet = relations_table([one], [], "link prediction")
    assert [row[1] for row in sheet.rows] == ["test", "+ links", "alone", "+ links", "popular", "chance"]
    assert sheet.rows[1][4:] == ("", "", "", ".7000", ".7100", ".7200", ".7300")
    assert sheet.rows[3][4:] == ("", "", "", ".7400", ".7500", ".7600", ".7700")
    assert "+ links: the log of a candidate's number of links is added to its score" in sheet.note
    assert "+ links" not in relations_table([result("test", 0.2)], [], "link prediction").note


@pytest.mark.parametrize("alone", [True, False])
def test_json_of_rankings_with_links_stands_beside_that_without(alone: bool) -> None:
    one = with_links(with_queries_alone(result("test", 0.2), 0.5) if alone else result("test", 0.2), 0.7)
    values = json.loads(json.dumps(one.to_json()))
    assert values["with_links"]["full"]["mrr"] == 0.7
    assert ("query_alone" in values) == alone
    assert not alone or values["query_alone"]["with_links"]["full"]["hits"]["1"] == 0.75
    assert LinkPrediction.from_json(values) == one
    del values["with_links"]["full"]
    with pytest.raises(KeyError):  # of an earlier version
        LinkPrediction.from_json(values)


def test_json_of_queries_read_alone_has_the_shape_of_the_other_reading() -> None:
    one = with_queries_alone(result("test", 0.2), 0.5)
    values = json.loads(json.dumps(one.to_json()))
    assert values["query_alone"]["in_batch"]["prec"] == 0.5
    assert set(values["query_alone"]["full"]) == {"mrr", "hits"}
    assert LinkPrediction.from_json(values) == one
    assert "query_alone" not in result("test", 0.2).to_json()


def test_json_has_every_figure_under_its_relation_and_part() -> None:
    values = json.loads(
        json.dumps(
            link_prediction_json(
                [result("validation", 0.1), result("test", 0.2), result("test", 0.3, "written_by")]
            )
        )
    )
    assert {name: list(parts) for name, parts in values.items()} == {
        "cites": ["validation", "test"],
        "written_by": ["test"],
    }
    assert values["cites"]["test"] == {
        "relation": "cites",
        "part": "test",
        "pairs": 20,
        "batch_size": 100,
        "chance": figures(0.01),
        "popularity": figures(0.02),
        "in_batch": {"prec": 0.2, "mrr": 0.21000000000000002, "ndcg": 0.22},
        "full": {
            "queries": 20,
            "candidates": 12345,
            "mrr": 0.23,
            "hits": {"1": 0.24000000000000002, "10": 0.25, "100": 0.26},
        },
    }


def test_earlier_json_opens() -> None:
    expected = result("test", 0.2)
    assert LinkPrediction.from_json(json.loads(json.dumps(expected.to_json()))) == expected
    clusters = ClusteringResult(
        20, {"a": 10}, {m.name: MetricSummary.from_values([0.5]) for m in CLUSTERING_METRICS}
    )
    values = json.loads(json.dumps(clusters.to_json()))
    assert values["nmi"] == {"values": [0.5], "mean": 0.5, "deviation": None}
    assert ClusteringResult.from_json(values) == clusters


@pytest.mark.parametrize(
    ("count", "splits", "runs"),
    [
        (1, "the test part of 1 split 7:1:2", "1 run; only nodes"),
        (
            2,
            "the test part of 2 splits 7:1:2 (mean ± standard deviation)",
            "2 runs (mean ± standard deviation); only nodes",
        ),
    ],
)
def test_one_repeat_has_no_deviation(count: int, splits: str, runs: str) -> None:
    repeated = MetricSummary.from_values([0.5] * count)
    scores = {name: {m.name: repeated for m in CLASSIFICATION_METRICS} for name in CLASSIFIERS}
    classes, parts = {"a": 10, "b": 10}, ((14, 2, 4),) * count
    classified = ClassificationResult(20, classes, (), False, 1.0, parts, 0.001, scores)
    table = classification_table([NodeClassification("paper", "transductive", classified)], "classification")
    assert table.note.endswith(splits)
    clusters = ClusteringResult(20, classes, {metric.name: repeated for metric in CLUSTERING_METRICS})
    assert runs in clustering_table([NodeClustering("paper", clusters)], "clustering").note


def test_widths_are_one_below_the_other() -> None:
    by_width = {
        width: [with_queries_alone(result("validation", figure), 0.5), result("test", figure + 0.1)]
        for width, figure in {16: 0.3, 8: 0.1}.items()
    }
    rows = widths_table(by_width, "link prediction by width").rows
    assert [row[:4] for row in rows] == [
        ("cites", "16", "valid.", ".3000"),
        ("", "", "alone", ".5000"),
        ("", "8", "valid.", ".1000"),
        ("", "", "alone", ".5000"),
        ("cites", "16", "test", ".4000"),
        ("", "8", "test", ".2000"),
    ]
