"""Recommendations on screen and as JSON."""

from __future__ import annotations

import io

from rich.console import Console

from heterformer.recommendation.core import Recommendations
from heterformer.recommendation.table import as_json, recommendation_tables
from heterformer.search.searcher import Hit, NamedNode, Ranking

RANKING = Ranking("item", 160, "exact", (Hit("item-1", "kettle and pan", 0.51, True, ()),))
ANSWERS = [
    Recommendations(NamedNode("user", "user-3", "Jane"), (), "bought", RANKING),
    Recommendations(None, (NamedNode("item", "item-8", "garden hose"),), "bought", RANKING),
]


def test_each_table_says_for_whom() -> None:
    shown = io.StringIO()
    Console(file=shown, width=100).print(recommendation_tables(ANSWERS))
    lines = shown.getvalue().splitlines()
    assert lines[0].strip() == "item nodes for user: Jane"
    assert any("item nodes for somebody with item: garden hose" in line for line in lines)
    assert sum("kettle and pan item-1" in line for line in lines) == 2


def test_json_has_everything() -> None:
    first, second = as_json(ANSWERS)
    assert first["user"] == {"node_type": "user", "id": "user-3", "name": "Jane"}
    assert second["user"] is None
    assert second["likes"][0]["id"] == "item-8"
    assert first["ranking"]["hits"][0]["score"] == 0.51
