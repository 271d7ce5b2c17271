"""The table of node columns: what the rest of the network relies on."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import heterformer
from heterformer.network.columns import KEYS, NODE_COLUMNS, NodeColumn, node_column, own_name
from tests.network.interchange.exporting import odd_network

DOCS = Path(heterformer.__file__).parents[2] / "docs"


@pytest.mark.parametrize("key", KEYS)
def test_every_key_is_documented(key: str) -> None:
    assert f"| `{key}` | " in (DOCS / "specification.md").read_text(encoding="utf-8")


def test_stored_columns_have_the_types_and_the_order_of_the_table(tmp_path: Path) -> None:
    network = odd_network(tmp_path / "network")
    stored = network.columns("paper")
    places = [NODE_COLUMNS.index(node_column(name)) for name in stored]
    assert places == sorted(places)
    assert set(places) == set(range(len(NODE_COLUMNS)))  # this network has every kind of column
    for name in stored:
        values = pl.from_arrow(network.column("paper", name))
        assert isinstance(values, pl.Series)
        assert values.dtype == node_column(name).dtype


def test_a_kept_column_is_stored_under_a_prefix() -> None:
    keep = node_column("attribute.text")
    assert keep.key == "keep"
    assert keep.stored(("text", "id")) == {"attribute.text": ("text",), "attribute.id": ("id",)}
    assert own_name("attribute.text") == "text" == own_name("text")


@pytest.mark.parametrize("column", [c for c in NODE_COLUMNS if c.missing], ids=lambda c: c.key)
def test_missing_values_are_recognized(column: NodeColumn) -> None:
    filled = {"text": "a", "label": ["a"], "time": 1.0}[column.key]
    empty = {"text": "", "label": [], "time": None}[column.key]
    values = pl.Series([filled, empty], dtype=column.dtype)
    assert column.is_missing(values).to_list() == [False, True]
