"""Parquet tables, nested ones included."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import numpy as np
import polars as pl
import pytest

from heterformer.network.tables import Column
from heterformer.network.tables.parquet import ParquetTable
from tests.network.tables.damage import DAMAGES, damaged_papers
from tests.networks import Tables, edges_of, kept


def with_columns(tables: Tables, **columns: Any) -> Tables:
    frame = pl.DataFrame({"id": ["p1", "p2"], "title": ["A", "B"]}).with_columns(**columns)
    frame.write_parquet(tables.folder / "papers.parquet")
    tables.paper["file"] = "papers.parquet"
    tables.write("cites.csv", "source,target\np1,p2\n")
    return tables


def column(values: list[Any], dtype: Any = None) -> pl.Series:
    return pl.Series(values, dtype=dtype)


@pytest.mark.parametrize("dtype", [pl.Int8, pl.UInt64, pl.Categorical, pl.String])
def test_ids_become_strings(dtype: Any, tables: Tables) -> None:
    ids = column(["1", "2"], pl.String).cast(dtype)
    with_columns(tables, id=ids).write("cites.csv", "source,target\n1,2\n")
    assert edges_of(tables.build(), "cites") == [("1", "2")]


def test_row_groups_are_read_some_rows_at_a_time(tables: Tables) -> None:
    tables.papers("papers.parquet", [{"id": f"p{i}", "title": f"word {i}"} for i in range(5)])
    table = ParquetTable(tables.folder / "papers.parquet", chunk_rows=2)
    assert [len(chunk) for chunk in table.chunks([Column("id", "id")])] == [2, 2, 1]
    tables.node_tables["paper"] = table
    assert tables.build().texts("paper") == [f"word {i}" for i in range(5)]
    tables.papers("papers.parquet", [{"id": f"p{i}" if i != 4 else " ", "title": "word"} for i in range(5)])
    tables.out = tables.folder / "again"
    assert tables.complaint() == "papers.parquet: row 5, column 'id': found ' ', expected an id."


@pytest.mark.parametrize(
    "values",
    [
        [2020.0, 2023.5],
        [date(2020, 1, 1), date(2023, 7, 3)],
        [datetime(2020, 1, 1), datetime(2023, 7, 3)],
        ["2020", "2023-07-03"],
    ],
    ids=["numbers", "dates", "date-times", "strings"],
)
def test_times_are_decimal_years(values: list[Any], tables: Tables) -> None:
    tables.paper["time"] = "when"
    times = with_columns(tables, when=column(values)).build().times("paper")
    np.testing.assert_allclose(times, [2020, 2023.5], atol=1e-9)


def test_a_missing_column(tables: Tables) -> None:
    tables.paper["id"] = "key"
    assert with_columns(tables).complaint() == (
        "papers.parquet: no column 'key', the columns are 'id', 'title'."
    )


def test_a_missing_field_inside_a_column(tables: Tables) -> None:
    tables.paper["text"] = ["meta.titel"]
    with_columns(tables, meta=column([{"title": "A", "year": 1}] * 2))
    assert tables.complaint() == (
        "papers.parquet: inside 'meta.titel': no column 'titel', the columns are 'title', 'year'."
    )


WRONG_KINDS = {
    "text of numbers": ({"text": ["x"]}, [None, 3], "found 3 (type Int64), expected text."),
    "text of lists": ({"text": ["x"]}, [[], ["A"]], "found ['A'] (type List(String)), expected text."),
    "bytes to show": (
        {"name": "x"},
        [None, b"\xff"],
        r"found b'\xff' (type Binary), expected text, numbers or dates.",
    ),
    "a path into text": ({"text": ["x.y"]}, [None, "A"], "expected records with a field 'y'."),
    "ids of floats": (
        {"id": "x"},
        [None, 2.5],
        "found 2.5 (type Float64), expected ids: text or whole numbers.",
    ),
    "times of truths": (
        {"time": "x"},
        [None, True],
        "found True (type Boolean), expected a number or a date.",
    ),
    "labels of floats": (
        {"label": "x"},
        [None, 2.5],
        "found 2.5 (type Float64), expected class names: text, whole numbers or true and false.",
    ),
    "labels of lists of floats": (
        {"label": "x"},
        [[], [2.5]],
        "found [2.5] (type List(Float64)), expected class names: text, whole numbers or true and false.",
    ),
}


@pytest.mark.parametrize("what", WRONG_KINDS)
def test_a_value_of_the_wrong_kind_is_shown_with_its_row(what: str, tables: Tables) -> None:
    wanted, values, message = WRONG_KINDS[what]
    tables.paper.update(wanted)
    said = with_columns(tables, x=column(values)).complaint()
    path = next(iter(wanted.values()))
    place = path if isinstance(path, str) else path[0]
    assert said.startswith(f"papers.parquet: row 2, column {place!r}: ")
    assert said.endswith(message)


def test_a_file_that_is_not_parquet(tables: Tables) -> None:
    tables.papers("papers.parquet", "id,title\np1,A\n")
    said = tables.complaint()
    assert said.startswith("papers.parquet: not a readable Parquet file (Parquet magic bytes not found")


def test_a_file_damaged_in_the_middle(tables: Tables) -> None:
    path = tables.write("papers.parquet", [{"id": f"p{i}", "title": f"word {i * i}"} for i in range(500)])
    data = path.read_bytes()
    path.write_bytes(data[:4] + b"\xff" * 200 + data[204:])
    tables.paper["file"] = "papers.parquet"
    assert tables.complaint().startswith("papers.parquet: not a readable Parquet file (")


@pytest.mark.parametrize("what", DAMAGES)
def test_a_broken_gzip_file(what: str, tables: Tables) -> None:
    reason = damaged_papers(tables, "papers.parquet.gz", what)
    assert tables.complaint().startswith(f"papers.parquet.gz: damaged gzip file ({reason}")


def test_a_table_without_rows(tables: Tables) -> None:
    pl.DataFrame(schema={"id": pl.String, "title": pl.String}).write_parquet(tables.folder / "papers.parquet")
    tables.paper["file"] = "papers.parquet"
    assert tables.complaint() == "papers.parquet: the table has no rows."


def test_records_kept_for_display_are_shown_as_json(tables: Tables) -> None:
    meta = [{"a": 1, "b": None}, None, {"a": 2, "b": ["x"]}, {"a": 3, "b": None}]
    rows = [{"id": f"p{i + 1}", "title": "A", "meta": m, "tags": ["s", "t"]} for i, m in enumerate(meta)]
    tables.papers("papers.parquet", rows)
    tables.paper["keep"] = ["meta", "tags"]
    built = tables.build()
    assert kept(built, "meta")[:2] == ['{"a": 1, "b": null}', None]
    assert kept(built, "tags")[:1] == ["s, t"]


def test_truth_values_and_whole_numbers_are_names_of_classes(tables: Tables) -> None:
    rows = [{"id": f"p{i}", "title": "A", "x": x} for i, x in enumerate([1.0, None, 2.0, 1.0], start=1)]
    tables.papers("papers.parquet", rows)
    tables.paper["label"] = "x"
    assert tables.build().labels("paper").to_list() == [["1"], [], ["2"], ["1"]]
