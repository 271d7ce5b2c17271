"""Attributes of nodes: their kinds, their values, and what is no attribute."""

from __future__ import annotations

import math
from typing import Any

import polars as pl
import pytest

from heterformer.network.attributes import KindGuess, booleans, numbers
from heterformer.network.tables import Place
from tests.networks import Tables

PLACE = Place("table", "column", 0)


def kind_of(*chunks: list[str | None], declared: Any = None) -> str:
    guess = KindGuess(declared)
    for chunk in chunks:
        guess.add(pl.Series(chunk, dtype=pl.String), PLACE)
    return guess.kind


def test_the_kind_is_the_narrowest_that_fits_all_chunks() -> None:
    assert kind_of(["1", "2.5", None], ["-3e2"]) == "number"
    assert kind_of(["1999-12-31", "2000"]) == "number"
    assert kind_of(["true", None], ["No", "YES"]) == "boolean"
    assert kind_of(["1", "2"], ["many"]) == "category"
    assert kind_of(["true"], ["1"]) == "category"
    assert kind_of(["inf"]) == "category"
    assert kind_of([None, None]) == "category"
    assert kind_of(["1", "2"], declared="category") == "category"


def test_values_of_each_kind() -> None:
    assert numbers(pl.Series(["1", None, "2000-01-01", "x", "inf"]))[[0, 2]].tolist() == [1.0, 2000.0]
    assert math.isnan(numbers(pl.Series(["inf"]))[0])
    assert booleans(pl.Series(["True", "no"])).tolist() == [1.0, 0.0]
    assert math.isnan(booleans(pl.Series(["maybe"]))[0])


PAPERS: list[dict[str, Any]] = [
    {"id": "p1", "title": "Byzantine generals", "year": 1982, "open": True, "country": "US"},
    {"id": "p2", "title": "Byzantine poems", "year": None, "open": False, "country": "N/A"},
    {"id": "p3", "title": "Kernel methods", "year": 2001, "open": None, "country": " "},
    {"id": "p4", "title": "Kernel bugs", "year": 1999, "open": True, "country": "DE"},
]


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".jsonl", ".parquet", ".csv.gz"])
def test_attributes_of_a_table(ending: str, tables: Tables) -> None:
    tables.papers(f"papers{ending}", PAPERS)
    tables.paper.update(attributes=["year", "open", "country"], keep=["year", "title"])
    network = tables.build()
    assert network.attribute_kinds == {"paper": {"year": "number", "open": "boolean", "country": "category"}}
    assert network.attributes("paper") == ("title", "year", "open", "country")  # each once, all displayed
    assert numbers(network.attribute("paper", "year"))[[0, 2, 3]].tolist() == [1982, 2001, 1999]
    assert network.attribute("paper", "country").to_list() == ["US", None, None, "DE"]


def test_a_declared_kind(tables: Tables) -> None:
    tables.papers("papers.jsonl", PAPERS)
    tables.paper["attributes"] = {"year": "category", "open": "boolean"}
    assert tables.build().attribute_kinds["paper"] == {"year": "category", "open": "boolean"}


@pytest.mark.parametrize(
    ("ending", "value", "attributes", "complaint"),
    [
        (".jsonl", ["DE", "FR"], ["country"], 'found ["DE", "FR"], expected one number, text or true'),
        (".jsonl", {"code": "DE"}, ["country"], 'found {"code": "DE"}, expected one number, text or true'),
        (".jsonl", "x", {"country": "number"}, "column 'country': found 'x', expected a number or a date."),
        (".csv", "x", {"country": "boolean"}, "column 'country': found 'x', expected true or false."),
    ],
)
def test_what_is_no_attribute(
    ending: str, value: Any, attributes: Any, complaint: str, tables: Tables
) -> None:
    tables.papers(
        f"papers{ending}", [*({**p, "country": None} for p in PAPERS[:3]), {**PAPERS[3], "country": value}]
    )
    tables.paper["attributes"] = attributes
    said = tables.complaint()
    assert complaint in said, said
    assert "4" in said.split(",")[0]  # the row


def test_a_list_in_parquet_is_no_attribute(tables: Tables) -> None:
    tables.papers("papers.parquet", [{**p, "country": ["DE"]} for p in PAPERS])
    tables.paper["attributes"] = "country"
    assert (
        "row 1, column 'country': found ['DE'] (type List(String)), expected one number" in tables.complaint()
    )


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"attributes": []}, "nodes.paper.attributes: found [], expected some columns."),
        ({"attributes": ["year", "year"]}, "nodes.paper.attributes: found 'year' twice, expected it once."),
        (
            {"attributes": {"year": "real"}},
            "attributes.year: found 'real', expected one of 'number', ",
        ),
        ({"attributes": ["nope"]}, "no column 'nope', the columns are"),
        ({"text_from": "name"}, "nodes.paper.text_from: is for types without text, but this one has 'text'."),
    ],
)
def test_what_a_specification_cannot_say(change: dict[str, Any], complaint: str, tables: Tables) -> None:
    tables.papers("papers.jsonl", PAPERS)
    tables.paper.update(change)
    assert complaint in tables.complaint()


def test_text_from_names_of_a_type_with_a_table_and_of_one_without(tables: Tables) -> None:
    tables.write("venues.csv", "id,full\nv1,Kernel workshop\nv2,\n")
    tables.spec["nodes"] |= {
        "author": {"text_from": "name"},
        "venue": {"file": "venues.csv", "name": "full", "text_from": "name"},
    }
    tables.write("by.csv", "p,a\np1,ann\n")
    tables.write("in.csv", "p,v\np1,v1\n")
    for name, end in (("by", "author"), ("in", "venue")):
        columns = ["p", end[0]]
        tables.spec["relations"][name] = {
            "from": "paper",
            "to": end,
            "file": f"{name}.csv",
            "columns": columns,
        }
    network = tables.build()
    assert network.text_from == {"author": "name", "venue": "name"}
    assert network.names("venue") == ["Kernel workshop", "v2"]
    assert set(network.schema.textless) == {"author", "venue"}


@pytest.mark.parametrize("value", ["title", "", None, ["name"]])
def test_text_from_something_else(value: Any, tables: Tables) -> None:
    tables.spec["nodes"]["author"] = {"text_from": value}
    assert "nodes.author.text_from: found" in tables.complaint()
