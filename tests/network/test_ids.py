"""Ids and rows."""

from __future__ import annotations

import polars as pl
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


def test_rows_of_known_ids() -> None:
    known = pl.Series(["a", None, "c"])
    assert known_rows(pl.Series(["c", "x", "a", "b"]), known).tolist() == [2, -1, 0, -1]
