"""Spellings of "missing" in the user's tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from heterformer import Network
from heterformer.network.build.report import Finding
from heterformer.network.interchange.export import export_network
from heterformer.network.spec import MISSING
from tests.networks import Tables, edges_of


def with_people(tables: Tables, authors: list[Any], ending: str = ".csv", **spec: Any) -> Tables:
    """Papers p1, p2, ... with one author each, who have no table."""
    rows = [{"id": f"p{i}", "title": f"word {i}", "by": v} for i, v in enumerate(authors, start=1)]
    tables.papers(f"papers{ending}", rows)
    tables.write("cites.csv", "source,target\np1,p2\n")
    tables.spec["nodes"]["author"] = None
    tables.spec["relations"]["by"] = {"from": "paper", "to": "author", "column": "by"}
    tables.spec |= spec
    return tables


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
def test_a_spelling_of_missing_is_no_node(ending: str, tables: Tables) -> None:
    network = with_people(tables, ["ann", "NaN", "N/A", " NaN", "bob", *MISSING], ending).build()
    assert network.ids("author") == ["ann", "bob"]
    tally = network.report.relations["by"]
    assert (tally.read, tally.kept) == (5 + len(MISSING), 2)
    assert tally.dropped["missing id written 'NaN'"] == Finding(3, ["p2 -> NaN", "p4 ->  NaN", "p6 -> NaN"])
    assert set(tally.dropped) == {f"missing id written {word!r}" for word in MISSING}


def test_both_ends_of_a_table_of_edges(tables: Tables) -> None:
    tables.write("cites.csv", "source,target\np1,p2\nnull,p3\np3,None\nNA,<NA>\n")
    network = tables.build()
    assert edges_of(network, "cites") == [("p1", "p2")]
    assert {
        reason: found.examples for reason, found in network.report.relations["cites"].dropped.items()
    } == {
        "missing id written 'null'": ["null -> p3"],
        "missing id written 'NA'": ["NA -> <NA>"],
        "missing id written 'None'": ["p3 -> None"],
    }


def test_elements_of_a_list(tables: Tables) -> None:
    network = with_people(tables, [["ann", "nan"], ["-"], ["bob"]], ".jsonl").build()
    assert edges_of(network, "by") == [("p1", "ann"), ("p3", "bob")]
    assert sum(found.count for found in network.report.relations["by"].dropped.values()) == 2


def test_as_the_id_of_a_node_it_is_an_error_with_a_remedy(tables: Tables) -> None:
    tables.write("papers.csv", "id,title\np1,A\nNaN,B\n")
    assert tables.complaint() == (
        "papers.csv: row 2, column 'id': found 'NaN', which means a missing value, expected an id; "
        "if it is an id, set 'missing' in the specification."
    )


def test_the_specification_may_name_other_spellings_or_none(tables: Tables) -> None:
    network = with_people(tables, ["NA", "unknown", "ann", "ann"], missing=["unknown"]).build()
    assert network.ids("author") == ["NA", "ann"]
    tables.out = tables.folder / "again"
    tables.spec["missing"] = []
    assert tables.build().ids("author") == ["NA", "unknown", "ann"]


@pytest.mark.parametrize("found", ["NaN", [None], [""], [1], None])
def test_something_else_than_a_list_of_spellings(found: Any, tables: Tables) -> None:
    tables.spec["missing"] = found
    assert tables.complaint().startswith(f"the specification: missing: found {found!r}, expected a list of")


def test_labels_times_and_splits(tables: Tables) -> None:
    tables.write(
        "papers.csv", "id,title,topic,year,part\np1,A,NaN,N/A,train\np2,B,x,2001,NA\np3,C,y;-,1999,-\n"
    )
    tables.write("cites.csv", "source,target\np1,p2\n")
    tables.paper.update({"label": "topic", "time": "year", "split": "part", "separator": ";"})
    network = tables.build()
    assert network.labels("paper").to_list() == [[], ["x"], ["y"]]
    assert network.label_kinds == {"paper": "single"}
    assert [str(time) for time in network.times("paper")] == ["nan", "2001.0", "1999.0"]
    assert network.splits("paper").to_list() == ["train", None, None]
    assert network.report.nodes["paper"].noted == {
        "no label, written 'NaN'": Finding(1, ["p1"]),
        "no label, written '-'": Finding(1, ["p3"]),
        "no label": Finding(1, ["p1"]),
        "no split, written 'NA'": Finding(1, ["p2"]),
        "no split, written '-'": Finding(1, ["p3"]),
        "no time": Finding(1, ["p1"]),
    }


def test_a_time_in_json(tables: Tables) -> None:
    tables.papers(
        "papers.jsonl", [{"id": f"p{i}", "title": "A", "year": y} for i, y in enumerate([1, "NaT"])]
    )
    tables.paper["time"] = "year"
    tables.write("cites.csv", "source,target\np1,p0\n")
    assert [str(time) for time in tables.build().times("paper")] == ["1.0", "nan"]


def test_texts_names_and_kept_columns_are_taken_as_they_are(tables: Tables) -> None:
    tables.write("papers.csv", "id,title,shown,extra\np1,None,NaN,-\np2,null,N/A,NA\n")
    tables.write("cites.csv", "source,target\np1,p2\n")
    tables.paper.update({"name": "shown", "keep": ["extra"]})
    network = tables.build()
    assert network.texts("paper") == ["None", "null"]
    assert network.names("paper") == ["NaN", "N/A"]
    assert network.column("paper", "attribute.extra").to_pylist() == ["-", "NA"]


def test_an_exported_network_keeps_such_ids(tables: Tables, tmp_path: Path) -> None:
    network = with_people(tables, ["NA", "-"], missing=[]).build()
    export_network(network, tmp_path / "out", "csv")
    again = Network.build(tmp_path / "out" / "network.yaml", tmp_path / "again.net")
    assert again.ids("author") == ["NA", "-"]
