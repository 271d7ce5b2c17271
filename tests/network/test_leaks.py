"""Attributes that tell the label, and relations that tell a number; test_describe.py has the others."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from heterformer.network.describe import describe
from heterformer.network.leaks import attribute_leaks, number_leaks
from heterformer.network.store import Network

COUNT = 100
TOPICS = ["AI" if i % 2 else "DB" for i in range(COUNT)]


def papers(attributes: dict[str, list[Any]], venues: list[str] | None = None) -> Network:
    """Papers in a ring, with a topic as their label."""
    ids = [f"p{i}" for i in range(COUNT)]
    columns: dict[str, list[Any]] = {"id": ids, "text": ["some words"] * COUNT, "topic": TOPICS, **attributes}
    read = {"attributes": [*attributes]} if attributes else {}
    nodes = {"paper": {"text": ["text"], "label": "topic", **read}, "venue": {}}
    relations = {
        "cites": {"from": "paper", "to": "paper", "columns": ["a", "b"]},
        "in": {"from": "paper", "to": "venue", "columns": ["a", "b"]},
    }
    ring = pl.DataFrame({"a": ids, "b": ids[1:] + ids[:1]})
    held = pl.DataFrame({"a": ids, "b": venues or [f"v{i % 7}" for i in range(COUNT)]})
    return Network.from_frames(
        {"nodes": nodes, "relations": relations, "predict": "cites"},
        {"paper": pl.DataFrame(columns)},
        {"cites": ring, "in": held},
    )


def test_an_attribute_that_is_the_label_under_another_name() -> None:
    code = [1.5 if topic == "AI" else 2.5 for topic in TOPICS]
    code[0] = code[0] + 1  # one value in a hundred is odd
    network = papers({"code": code, "flag": [None, *(topic == "AI" for topic in TOPICS[1:])]})
    ends = "of its values): remove it before classification."
    expected = [
        f"attribute 'code' leaks the label of paper nodes (100.0% {ends}",
        f"attribute 'flag' leaks the label of paper nodes (100.0% {ends}",
    ]
    assert attribute_leaks(network, "paper") == expected
    assert [w for w in describe(network).warnings if "leaks" in w] == expected


def test_attributes_that_tell_little_or_are_nearly_ids() -> None:
    quarter = [f"q{i % 3}" for i in range(COUNT)]
    mostly = ["x" if (topic == "AI") == (i > 4) else "y" for i, topic in enumerate(TOPICS)]
    network = papers({"number": list(range(COUNT)), "quarter": quarter, "mostly": mostly})
    assert attribute_leaks(network, "paper") == []
    assert attribute_leaks(network, "venue") == []


@pytest.mark.parametrize(("noise", "leaks"), [(0.0, True), (0.05, True), (0.5, False)])
def test_a_relation_to_the_number_itself(noise: float, leaks: bool) -> None:
    rng = np.random.default_rng(0)
    year = rng.integers(2000, 2005, COUNT)
    network = papers({}, [str(y) for y in year])
    numbers = year + rng.normal(size=COUNT) * noise
    numbers[3] = np.nan
    found = number_leaks(network, "paper", numbers)
    assert bool(found) == leaks
    if leaks:
        assert found[0].startswith("relation 'in' leaks the number of paper nodes (")
        assert found[0].endswith("of its variance): remove it before regression.")


def test_venues_of_one_paper_each_tell_no_number() -> None:
    network = papers({}, [f"v{i // 2}" for i in range(COUNT)])
    assert number_leaks(network, "paper", np.arange(COUNT).astype(float)) == []
    assert number_leaks(papers({}), "paper", np.full(COUNT, np.nan)) == []
    assert number_leaks(papers({}), "paper", np.ones(COUNT)) == []
