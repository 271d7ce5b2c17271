"""Frames in memory as tables."""

from __future__ import annotations

from typing import Any

import pandas as pd
import polars as pl
import pytest

from heterformer.errors import InputError
from heterformer.network.tables import Column, FrameTable

VALUES: dict[str, list[Any]] = {"id": [1, 2], "authors": [["a", None], []]}
FRAMES = {
    "polars": pl.DataFrame,
    "lazy polars": pl.LazyFrame,
    "pandas": pd.DataFrame,
    "arrow": lambda values: pl.DataFrame(values).to_arrow(),
    "dict": dict,
}


@pytest.mark.parametrize("kind", FRAMES)
def test_every_kind_of_frame_is_read_alike(kind: str) -> None:
    table = FrameTable(FRAMES[kind](VALUES), "the paper frame")
    (chunk,) = table.chunks([Column("id", "id"), Column("authors", "ids")])
    assert [c.to_list() for c in chunk.columns] == [["1", "2"], [["a", None], []]]
    assert (chunk.first_row, chunk.done, len(chunk)) == (0, 1.0, 2)


def test_a_column_that_the_frame_lacks() -> None:
    table = FrameTable(pl.DataFrame(VALUES), "the paper frame")
    with pytest.raises(InputError) as caught:
        next(table.chunks([Column("key", "id")]))
    assert str(caught.value) == "the paper frame: no column 'key', the columns are 'id', 'authors'."


SERIES = (pd.Series([1], name="id"), pl.Series("id", [1]))


@pytest.mark.parametrize(
    "found", [[{"id": 1}], "papers.csv", None, *SERIES], ids=lambda found: str(type(found))
)
def test_something_else_than_a_frame(found: object) -> None:
    with pytest.raises(InputError) as caught:
        FrameTable(found, "the paper frame")
    expected = "expected a polars or pandas frame, an Arrow table or a dict of columns."
    assert str(caught.value) == f"the paper frame: found {type(found).__name__}, {expected}"


def test_columns_of_different_lengths() -> None:
    table = FrameTable({"id": [1, 2, 3], "title": ["a", "b"]}, "the paper frame")
    with pytest.raises(InputError, match=r"^the paper frame: columns differ in length \(.*'title'.*\)\.$"):
        next(table.chunks([Column("id", "id")]))


def test_whole_numbers_with_gaps_which_pandas_turns_into_floats_are_ids() -> None:
    table = FrameTable(pd.DataFrame({"id": [1, None, -2]}), "the paper frame")
    (chunk,) = table.chunks([Column("id", "id"), Column("id", "ids")])
    assert [c.to_list() for c in chunk.columns] == [["1", None, "-2"], [["1"], [None], ["-2"]]]


def test_lists_of_whole_floats_are_ids() -> None:
    table = FrameTable(pl.DataFrame({"ids": [[1.0, float("nan")], [], None]}), "the paper frame")
    (chunk,) = table.chunks([Column("ids", "ids")])
    assert chunk.columns[0].to_list() == [["1", None], [], None]


@pytest.mark.parametrize("found", [1.5, float("inf"), 2.0**60])
def test_other_floats_are_no_ids(found: float) -> None:
    table = FrameTable(pl.DataFrame({"id": [1.0, None, found, 0.5]}), "the paper frame")
    with pytest.raises(InputError) as caught:
        next(table.chunks([Column("id", "id")]))
    expected = f"row 3, column 'id': found {found} (type Float64), expected ids: text or whole numbers."
    assert str(caught.value) == f"the paper frame: {expected}"


def test_an_odd_pandas_column_that_nobody_asks_for_is_no_reason_to_fail() -> None:
    frame = pd.DataFrame({"id": ["a", "b"], "odd": [{"x": 1}, 2]})
    (chunk,) = FrameTable(frame, "the paper frame").chunks([Column("id", "id")])
    assert chunk.columns[0].to_list() == ["a", "b"]


def test_a_pandas_column_that_is_there_twice() -> None:
    frame = pd.DataFrame([["a", "b"]], columns=["id", "id"])
    with pytest.raises(InputError, match=r"^the paper frame: duplicate column 'id'\.$"):
        next(FrameTable(frame, "the paper frame").chunks([Column("id", "id")]))
