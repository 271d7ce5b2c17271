"""Ids and rows."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heterformer.network.ids import IdIndex, known_rows
from tests.networks import few

IDS = st.lists(st.none() | st.text(max_size=2), max_size=12)


def strings(values: list[str | None]) -> pl.Series:
    return pl.Series(values, dtype=pl.String)


@few
@given(st.lists(st.text(max_size=2), unique=True), IDS)
def test_known_ids_have_their_row_and_others_none(known: list[str], asked: list[str | None]) -> None:
    rows = {name: row for row, name in enumerate(known)}
    index = IdIndex(strings(list(known)))
    assert index.rows(strings(asked)).to_list() == [None if i is None else rows.get(i) for i in asked]
    assert len(index) == len(known)


@few
@given(st.lists(IDS, max_size=4))
def test_an_index_that_grows_gives_rows_in_the_order_of_meeting(batches: list[list[str | None]]) -> None:
    index, met = IdIndex(), dict[str, int]()
    for batch in batches:
        for name in batch:
            if name is not None:
                met.setdefault(name, len(met))
        assert index.rows(strings(batch)).to_list() == [None if i is None else met[i] for i in batch]
    assert index.ids.to_list() == list(met)


@pytest.mark.parametrize(
    ("batches", "ids"),
    [
        ([["7", "7.0", "8.0"], ["8", "7"]], ["7", "8.0"]),  # in one batch, in a later one
        ([["7.0"], ["7", "7.0", "x.0", "7.00", "v7", None]], ["7.0", "x.0", "7.00", "v7"]),
        ([["-1.0", "-1"], ["1.5", "1.0"], ["1"]], ["-1", "1.5", "1.0"]),
    ],
)
def test_a_whole_number_is_one_node_in_either_spelling(batches: list[list[str]], ids: list[str]) -> None:
    index = IdIndex()
    for batch in batches:
        index.rows(index.as_known(strings(list(batch))))
    assert index.ids.to_list() == ids


def test_both_spellings_of_a_table_are_two_nodes() -> None:
    index = IdIndex(strings(["1", "1.0", "2.0"]))
    assert index.as_known(strings(["1", "1.0", "2", "3", None])).to_list() == ["1", "1.0", "2.0", "3", None]


def test_rows_of_known_ids() -> None:
    known = pl.Series(["a", None, "c"])
    assert known_rows(pl.Series(["c", "x", "a", "b"]), known).tolist() == [2, -1, 0, -1]
