"""Ids that look like lists."""

from __future__ import annotations

import polars as pl
import pytest

from heterformer.network.list_ids import ListIds, find_list_ids

MANY = [f"a{i}" for i in range(200)]


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (["Ada;Bo", "Cy"], ListIds(";", 1, "Ada;Bo")),
        (["Ada | Bo", "Bo | Cy", "a;b"], ListIds("|", 2, "Ada | Bo")),
        (["Ada, Bo", "Ada"], ListIds(",", 1, "Ada, Bo")),
        ([*MANY, "a1;x"], ListIds(";", 1, "a1;x")),
        (["Lovelace, Ada", "Carroll, Lewis"], None),
        ([*MANY, "x;y"], None),
        (["a;", ";b", ";"], None),
        (["a", "b"], None),
        ([], None),
    ],
)
def test_ids_that_hold_several(ids: list[str], expected: ListIds | None) -> None:
    assert find_list_ids(pl.Series(ids, dtype=pl.String)) == expected
