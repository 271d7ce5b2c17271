from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformers import BertConfig

from heterformer.network.split.draw import make_split
from heterformer.network.split.options import SplitOptions
from heterformer.plan.network import PlannedNetwork, TextSample
from heterformer.plan.options import PlanOptions
from tests.learning import tiny_network, tiny_reader, tiny_tokens


def network_of(backbone: str | None = None, **options: Any) -> PlannedNetwork:
    return PlannedNetwork.from_network(
        tiny_network(), SplitOptions(), backbone or tiny_reader(), PlanOptions(**options)
    )


def test_is_the_network_as_it_is() -> None:
    network, split = tiny_network(), make_split(tiny_network(), SplitOptions())
    found = network_of()
    assert found.schema == network.schema
    assert (found.pairs, found.held_out) == (len(split.train), len(split.held_out))
    lengths = np.diff(tiny_tokens().offsets)
    assert found.sample.length == pytest.approx(lengths.mean())  # all texts fit into the sample
    assert found.texts == 200
    edges = len(network.edges("written_by")[0]) + len(network.edges("published_in")[0])
    assert found.textless_edges == edges


def test_neighbors_are_those_that_are_sampled() -> None:
    found = network_of()
    papers = [b - a for a, b in _bounds("paper")]
    authors = [min(b - a, 3) for (a, b), others in zip(_bounds("author"), papers, strict=True) if others]
    some = [min(n, 5) for n in papers if n]
    assert found.neighbors["paper"] == pytest.approx(np.mean(some))
    assert found.neighbors["author"] == pytest.approx(np.mean(authors))
    assert found.text_neighbors == found.neighbors["paper"]
    assert found.textless_neighbors == found.neighbors["author"] + found.neighbors["venue"]


def _bounds(neighbor: str) -> list[tuple[int, int]]:
    indptr = tiny_network().adjacency("paper", neighbor).indptr.tolist()
    return list(pairwise(indptr))


def test_grows_in_proportion_to_the_query_nodes() -> None:
    small, large = network_of(), network_of(counts=("paper=2e5",))
    assert large.schema.counts == {**small.schema.counts, "paper": 200_000}
    assert large.pairs == 1000 * small.pairs
    assert large.held_out == 1000 * small.held_out
    assert large.textless_edges == 1000 * small.textless_edges
    assert large.neighbors == small.neighbors
    given = network_of(counts=("paper=2e5",), pairs=7e9)
    assert given.pairs == 7_000_000_000


def test_without_tokenizer_texts_are_as_long_as_they_may_be(tmp_path: Path) -> None:
    BertConfig(vocab_size=50).save_pretrained(tmp_path)
    found = network_of(str(tmp_path))
    assert found.sample.texts == ()
    assert found.sample.length == tiny_network().schema.max_tokens
    assert found.sample.distinct(1, 50) == 32
    assert found.sample.distinct(2, 50) == 50


def test_distinct_tokens() -> None:
    sample = TextSample((np.array([1, 2, 3]), np.array([1, 2, 4]), np.array([1, 2])), limit=9)
    assert sample.length == pytest.approx(8 / 3)
    assert sample.distinct(1, 100) == 3
    assert sample.distinct(3, 100) == 4
    assert sample.distinct(6, 100) == 8  # nobody knows better
    assert sample.distinct(6, 5) == 5
