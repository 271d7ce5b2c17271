"""Relations: where they may stand, and what becomes of rows that make no edge."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np
import polars as pl
import pytest

from heterformer.errors import InputError
from heterformer.network.build.relations import Endpoints, read_relation
from heterformer.network.build.report import Finding, Tally
from heterformer.network.ids import IdIndex
from heterformer.network.spec import NetworkSpec
from heterformer.network.store import Network
from heterformer.network.tables import Column
from heterformer.network.tables.delimited import DelimitedTable
from tests.networks import Tables, edges_of

BY = [("p1", "ann"), ("p1", "bob"), ("p3", "ann")]
NESTED = [".jsonl", ".jsonl.gz", ".parquet", ".parquet.gz"]


def with_authors(
    tables: Tables, ending: str, values: list[Any], path: str = "authors", **more: Any
) -> Network:
    """Papers p1, p2, ... with a column of authors, who have no table."""
    rows = [{"id": f"p{i}", "title": f"word {i}", "authors": v} for i, v in enumerate(values, start=1)]
    tables.papers(f"papers{ending}", rows)
    tables.spec["nodes"]["author"] = None
    tables.spec["relations"]["by"] = {"from": "paper", "to": "author", "column": path, **more}
    tables.write("cites.csv", "source,target\np1,p2\n")
    return tables.build()


@pytest.mark.parametrize("ending", NESTED)
def test_a_list_valued_column(ending: str, tables: Tables) -> None:
    network = with_authors(tables, ending, [["ann", "bob"], [], ["ann"], None])
    assert edges_of(network, "by") == BY
    assert network.ids("author") == ["ann", "bob"]
    assert network.report.relations["by"].dropped == {}


@pytest.mark.parametrize("ending", NESTED)
def test_a_path_into_a_list_of_records(ending: str, tables: Tables) -> None:
    ann, bob = {"id": "ann", "name": "Ann"}, {"id": "bob", "name": "Bob"}
    assert edges_of(with_authors(tables, ending, [[ann, bob], [], [ann]], "authors.id"), "by") == BY


@pytest.mark.parametrize("ending", NESTED)
def test_a_path_into_a_record(ending: str, tables: Tables) -> None:
    network = with_authors(tables, ending, [{"id": "ann"}, {"id": None}, {"id": "bob"}], "authors.id")
    assert edges_of(network, "by") == [("p1", "ann"), ("p3", "bob")]


@pytest.mark.parametrize("ending", [".csv", ".tsv.gz", ".jsonl", ".parquet"])
def test_a_single_valued_column(ending: str, tables: Tables) -> None:
    network = with_authors(tables, ending, ["ann", None, "bob"])
    assert edges_of(network, "by") == [("p1", "ann"), ("p3", "bob")]
    assert network.report.relations["by"].dropped == {}


@pytest.mark.parametrize("ending", [".csv", ".tsv.gz", ".jsonl", ".parquet"])
def test_a_column_with_a_separator(ending: str, tables: Tables) -> None:
    network = with_authors(tables, ending, ["ann; bob", None, "ann"], separator=";")
    assert edges_of(network, "by") == BY


@pytest.mark.parametrize("ending", [".jsonl", ".parquet"])
def test_gaps_inside_a_list_are_dropped_and_counted(ending: str, tables: Tables) -> None:
    network = with_authors(tables, ending, [["ann", None, "bob", " "], [], ["ann"]])
    assert edges_of(network, "by") == BY
    tally = network.report.relations["by"]
    assert (tally.read, tally.kept) == (5, 3)
    assert tally.dropped == {"missing id": Finding(2, ["p1 -> None", "p1 ->  "])}


def test_whole_numbers_name_nodes_as_strings_do(tables: Tables) -> None:
    tables.papers("papers.parquet", [{"id": 1, "title": "A"}, {"id": 2, "title": "B"}])
    tables.write("cites.parquet", [{"source": 1, "target": 2}])
    tables.cites["file"] = "cites.parquet"
    assert edges_of(tables.build(), "cites") == [("1", "2")]


def test_two_directions_and_two_relations_are_different_edges(tables: Tables) -> None:
    tables.write("cites.csv", "source,target\np1,p2\np2,p1\n")
    tables.spec["relations"]["extends"] = dict(tables.cites)
    tables.spec["predict"] = "cites"
    network = tables.build()
    assert edges_of(network, "cites") == edges_of(network, "extends") == [("p1", "p2"), ("p2", "p1")]
    assert network.adjacency("paper", "paper").degrees.tolist() == [4, 4, 0, 0]


def test_textless_nodes_may_be_joined_to_each_other_without_a_table(tables: Tables) -> None:
    tables.spec["nodes"]["author"] = None
    columns = ["a", "b"]
    tables.spec["relations"]["knows"] = {
        "from": "author",
        "to": "author",
        "file": "k.csv",
        "columns": columns,
    }
    tables.write("k.csv", "a,b\nann,bob\nbob,cid\ncid,cid\n")
    network = tables.build()
    assert edges_of(network, "knows") == [("ann", "bob"), ("bob", "cid")]
    assert sorted(network.ids("author")) == ["ann", "bob", "cid"]


def dropped(tables: Tables, rows: str) -> dict[str, Finding]:
    """What the report says of rows that come after one sound row."""
    tables.write("cites.csv", f"source,target\np1,p2\n{rows}")
    network = tables.build()
    tally = network.report.relations["cites"]
    assert tally.read - tally.kept == sum(f.count for f in tally.dropped.values())
    assert edges_of(network, "cites") == [("p1", "p2")]
    return tally.dropped


def test_a_row_that_names_an_unknown_node_is_dropped_and_counted(tables: Tables) -> None:
    rows = "".join(f"p1,x{i}\n" for i in range(7)) + "y,p1\n"
    examples = ["y -> p1", *(f"p1 -> x{i}" for i in range(4))]
    assert dropped(tables, rows) == {"unknown paper": Finding(8, examples)}


def test_a_row_with_a_gap_is_dropped_and_counted(tables: Tables) -> None:
    assert dropped(tables, 'p1,\n,p2\n"  ",p3\n') == {
        "missing id": Finding(3, ["p1 -> None", "None -> p2", "   -> p3"])
    }


def test_a_self_loop_is_dropped_and_counted(tables: Tables) -> None:
    assert dropped(tables, "p1,p1\np3,p3\n") == {"self-loop": Finding(2, ["p1 -> p1", "p3 -> p3"])}


def test_a_duplicate_is_dropped_and_counted(tables: Tables) -> None:
    assert dropped(tables, "p1,p2\np1,p2\n") == {"duplicate": Finding(2, ["p1 -> p2"] * 2)}


def test_a_duplicate_in_another_block_is_dropped(tables: Tables) -> None:
    path = tables.write("cites.csv", "source,target\n" + "p1,p2\n" * 100 + "p1,x\n" * 100)
    table = DelimitedTable(path, ",", block_size=128)
    assert len(list(table.chunks([Column("source", "id")]))) > 5
    cites = NetworkSpec.parse(tables.spec).relations["cites"]
    papers, tally = IdIndex(pl.Series(["p1", "p2"])), Tally()
    ends = Endpoints("cites", cites, papers, papers, tally)
    source, target, *_ = read_relation(table, cites, ends, advance=lambda _: None, block_rows=1)
    assert (source.tolist(), target.tolist()) == ([0], [1])
    assert tally.dropped == {
        "unknown paper": Finding(100, ["p1 -> x"] * 5),
        "duplicate": Finding(99, ["p1 -> p2"] * 5),
    }


@pytest.mark.parametrize(("row", "unknown"), [("p1,x9", "x9"), ("y9,p1", "y9")])
def test_an_unknown_node_is_an_error_on_request(row: str, unknown: str, tables: Tables) -> None:
    tables.cites["unknown"] = "error"
    tables.write("cites.csv", f"source,target\np1,p2\n{row}\n")
    assert tables.complaint() == (
        f"cites.csv: row 2: unknown paper {unknown!r} in relation 'cites', expected an id of the paper table."
    )


def test_a_relation_that_keeps_no_row_is_an_error(tables: Tables) -> None:
    tables.write("cites.csv", "source,target\nx1,p2\nx2,p3\np1,p1\n")
    assert tables.complaint() == (
        "cites.csv: all rows of relation 'cites' are dropped (unknown paper, for example x1 -> p2); "
        "check the order of 'columns' and that both tables use the same ids."
    )


def test_a_relation_without_rows_has_no_edges(tables: Tables) -> None:
    tables.write("extends.csv", "source,target\n")
    tables.spec["relations"]["extends"] = {**tables.cites, "file": "extends.csv"}
    tables.spec["predict"] = "cites"
    assert edges_of(tables.build(), "extends") == []


def test_a_predicted_relation_without_rows_is_an_error(tables: Tables) -> None:
    tables.write("cites.csv", "source,target\n")
    assert tables.complaint().endswith("the predicted relation 'cites' has no rows.")


def test_a_relation_column_of_the_wrong_kind(tables: Tables) -> None:
    tables.papers("papers.jsonl", [{"id": "p1", "title": "A", "authors": [{"id": "ann"}]}])
    tables.spec["nodes"]["author"] = None
    tables.spec["relations"]["by"] = {"from": "paper", "to": "author", "column": "authors"}
    said = """papers.jsonl: line 1, column 'authors': found {"id": "ann"}, expected an id: """
    assert tables.complaint() == said + "text or a whole number."


def test_whole_numbers_that_pandas_wrote_as_floats(tables: Tables) -> None:
    tables.write("papers.csv", "id,title\n1,A\n2,B\n3.0,C\n")
    tables.write("cites.csv", "source,target\n1.0,2.0\n2,3.0\n3.0,1\n4.0,1\n1.5,1\n")
    network = tables.build()
    assert edges_of(network, "cites") == [("1", "2"), ("2", "3.0"), ("3.0", "1")]
    tally = network.report.relations["cites"]
    assert tally.noted == {"known with or without '.0'": Finding(2, ["1.0", "2.0"])}
    assert tally.dropped == {"unknown paper": Finding(2, ["4.0 -> 1", "1.5 -> 1"])}


def test_whole_numbers_of_a_node_table_that_pandas_wrote_as_floats(tables: Tables) -> None:
    tables.write("papers.csv", "id,title\n1.0,A\n2.0,B\n3,C\n3.0,D\n")
    tables.write("cites.csv", "source,target\n1,2\n2.0,3\n3.0,1\n")
    network = tables.build()
    assert edges_of(network, "cites") == [("1.0", "2.0"), ("2.0", "3"), ("3.0", "1.0")]
    noted = network.report.relations["cites"].noted
    assert noted == {"known with or without '.0'": Finding(3, ["1", "2", "1"])}


# --- Weights and times -----------------------------------------------------------------------------------

RATED: list[dict[str, Any]] = [
    {"source": "p1", "target": "p2", "stars": 4.5, "day": "2020-01-01"},
    {"source": "p3", "target": "p4", "stars": 0, "day": "2021"},
    {"source": "p1", "target": "p2", "stars": 1, "day": "2019"},
    {"source": "p2", "target": "nobody", "stars": 2, "day": "2020"},
    {"source": "p2", "target": "p3", "stars": 2, "day": "2018.5"},
]


def rated(tables: Tables, rows: list[dict[str, Any]], ending: str = ".csv") -> Tables:
    tables.write(f"rated{ending}", rows)
    tables.cites.update(file=f"rated{ending}", weight="stars", time="day")
    return tables


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
def test_weights_and_times_follow_their_edges_both_ways(ending: str, tables: Tables) -> None:
    network = rated(tables, RATED, ending).build()
    assert network.edge_columns == {"cites": ["weight", "time"]}
    assert edges_of(network, "cites") == [("p1", "p2"), ("p2", "p3"), ("p3", "p4")]
    weights, times = (network.edge_values("cites", column) for column in ("weight", "time"))
    assert weights is not None
    assert weights.tolist() == [5.5, 2.0, 0.0]
    assert times is not None
    assert times.tolist() == [2019.0, 2018.5, 2021.0]
    adjacency = network.adjacency("paper", "paper")
    assert adjacency.weight is not None
    assert adjacency.time is not None
    centers, back = adjacency.entries(1)
    ends = zip(network.ids("paper", back), network.ids("paper", centers), strict=True)
    assert dict(zip(ends, adjacency.weight[adjacency.positions(1)].tolist(), strict=True)) == dict(
        zip(edges_of(network, "cites"), weights.tolist(), strict=True)
    )


def test_a_relation_without_weights_beside_one_that_has_some(tables: Tables) -> None:
    tables.spec["relations"]["extends"] = {**tables.cites}
    tables.spec["predict"] = "cites"
    network = rated(tables, RATED).build()
    adjacency = network.adjacency("paper", "paper")
    assert adjacency.weight is not None
    assert adjacency.time is not None
    assert set(adjacency.weight[adjacency.positions(2)].tolist()) == {1.0}
    assert np.isnan(adjacency.time[adjacency.positions(2)]).all()
    assert network.edge_values("extends", "weight") is None


def test_without_weights_and_times_nothing_is_stored_of_them(tables: Tables) -> None:
    network = tables.build()
    assert network.edge_columns == {}
    assert network.edge_values("cites", "weight") is None
    assert not list(network.path.rglob("weight.npy"))
    assert not list(network.path.rglob("time.npy"))
    assert "edge_columns" not in (network.path / "network.json").read_text()


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
@pytest.mark.parametrize(
    ("column", "value", "complaint"),
    [
        ("stars", -1.0, "found -1.0, expected a number of at least 0."),
        ("stars", float("nan"), "expected a number of at least 0."),
        ("stars", float("inf"), "expected a number of at least 0."),
        ("stars", None, "found nothing, expected a number of at least 0."),
        ("day", None, "found nothing, expected a number or a date such as 2023-08-06."),
    ],
)
def test_weights_and_times_that_are_none(
    ending: str, column: str, value: Any, complaint: str, tables: Tables
) -> None:
    rows = [*RATED[:4], {**RATED[4], column: value}]
    if ending == ".csv" and value is not None:
        complaint = complaint.replace(f"found {value}", f"found '{value}'")
    said = rated(tables, rows, ending).complaint()
    assert complaint in said
    assert f"column {column!r}" in said
    assert "row 5" in said or "line 5" in said, said


@pytest.mark.parametrize("ending", [".csv", ".jsonl"])
def test_a_weight_that_is_a_word(ending: str, tables: Tables) -> None:
    said = rated(tables, [{**RATED[0], "stars": "good"}], ending).complaint()
    assert "'stars': found" in said
    assert "good" in said
    assert "expected a number of at least 0." in said


def test_weights_of_a_column_relation_are_refused(tables: Tables) -> None:
    with pytest.raises(InputError, match=r"relations\.by\.weight: needs 'file', to which it applies"):
        with_authors(tables, ".jsonl", [["ann"]], weight="stars")


@pytest.mark.parametrize("stars", [1e39, 1e-50])
def test_a_weight_beyond_what_is_stored(stars: float, tables: Tables) -> None:
    said = rated(tables, [RATED[1], {**RATED[4], "stars": stars}]).complaint()
    assert said == (
        f"rated.csv: found a weight of {stars:g} in relation 'cites', expected 0 or 1e-30 to 1e+30; "
        "choose another unit."
    )


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
def test_edges_of_one_day_have_different_times(ending: str, tables: Tables) -> None:
    """Or a pair would see what happened in the evening of its day."""
    days = [datetime(2020, 12, 31, hour) for hour in (0, 9, 18)]
    values = days if ending == ".parquet" else [day.isoformat() for day in days]
    pairs = [("p1", "p2"), ("p2", "p3"), ("p3", "p4")]
    rows = [{"source": s, "target": t, "stars": 1, "day": v} for (s, t), v in zip(pairs, values, strict=True)]
    times = rated(tables, rows, ending).build().edge_values("cites", "time")
    assert times is not None
    np.testing.assert_allclose(times, 2020 + (365 + np.array([0, 9, 18]) / 24) / 366, rtol=0, atol=1e-10)
    assert (times < 2021).all()
