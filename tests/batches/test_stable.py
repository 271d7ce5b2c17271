"""The sample of an embedding: real visible edges, uniform, and a function of ids alone."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heterformer.batches.batcher import Batcher
from heterformer.batches.stable import StableSampler
from heterformer.batches.visible import VisibleNetwork
from heterformer.network.split.options import SplitOptions
from heterformer.network.store import Network
from heterformer.network.tokens import open_tokens
from tests.networks import Facts, few, networks, split_of, tokenizer

SPEC = {
    "name": "star",
    "nodes": {"paper": {"text": ["title"]}},
    "relations": {"cites": {"from": "paper", "to": "paper", "columns": ["source", "target"]}},
}


def star(papers: list[str], edges: list[tuple[str, str]]) -> Network:
    nodes = pl.DataFrame({"id": papers, "title": ["word " + p for p in papers]})
    cites = pl.DataFrame(edges, schema=["source", "target"], orient="row")
    return Network.from_frames(SPEC, {"paper": nodes}, {"cites": cites})


def drawn(network: Network, paper: str, fan_out: int, seed: int = 0) -> set[str]:
    visible, rows = VisibleNetwork.whole(network), network.rows("paper", [paper])
    sample = StableSampler(network, seed).sample(visible, "paper", "paper", rows, fan_out)
    return set(network.ids("paper", sample.neighbor))


@few
@given(networks(), st.integers(1, 4), st.integers(0, 9))
def test_a_sample_is_of_distinct_visible_edges_and_as_large_as_can_be(
    facts: Facts, fan_out: int, seed: int
) -> None:
    with facts.built() as network:
        visible = VisibleNetwork.for_evaluation(network, split_of(network, SplitOptions()))
        sampler, schema = StableSampler(network, seed), network.schema
        for edge_type in schema.edge_types:
            view = visible.adjacency(edge_type.center, edge_type.neighbor)
            gone = set(view.gone.tolist())
            rows = np.arange(schema.counts[edge_type.center])[::-1]
            sample = sampler.sample(visible, edge_type.center, edge_type.neighbor, rows, fan_out)
            assert (np.diff(sample.center) >= 0).all()
            for position, row in enumerate(rows.tolist()):
                entries = range(*view.adjacency.indptr[row : row + 2].tolist())
                seen = {
                    (int(view.adjacency.neighbor[e]), int(view.adjacency.edge_type[e]))
                    for e in entries
                    if e not in gone
                }
                mine = sample.center == position
                found = list(
                    zip(sample.neighbor[mine].tolist(), sample.edge_type[mine].tolist(), strict=True)
                )
                assert len(found) == len(set(found)) == min(fan_out, len(seen))
                assert set(found) <= seen


def test_every_neighbour_is_as_likely() -> None:
    network = star(["c", *map(str, range(6))], [("c", str(i)) for i in range(6)])
    counts = Counter(name for seed in range(3000) for name in drawn(network, "c", 2, seed))
    assert set(counts) == set(map(str, range(6)))
    assert all(abs(count - 1000) < 150 for count in counts.values())  # about five standard deviations


def test_other_rows_and_other_batches_draw_the_same() -> None:
    papers = [f"p{i}" for i in range(30)]
    edges = [("p0", p) for p in papers[1:20]] + [("p25", "p0"), ("p3", "p9")]
    shuffled = random.Random(1).sample(papers, len(papers))
    assert drawn(star(papers, edges), "p0", 5) == drawn(star(shuffled, edges[::-1]), "p0", 5)


def test_one_more_edge_displaces_at_most_one_neighbour() -> None:
    papers = [f"p{i}" for i in range(40)]
    edges = [("p0", p) for p in papers[1:30]]
    before = drawn(star(papers, edges), "p0", 5)
    kept = 0
    for new in papers[30:]:
        after = drawn(star(papers, [*edges, ("p0", new)]), "p0", 5)
        assert len(before & after) >= 4
        kept += after == before
    assert kept >= 4  # a new edge is drawn with probability 1/6


def test_batches_of_nodes_can_be_made_of_it_and_batches_of_pairs_are_not() -> None:
    network = star(["c", *map(str, range(9))], [("c", str(i)) for i in range(9)])
    visible = VisibleNetwork.whole(network)
    tokens = open_tokens(network, tokenizer())
    batcher, sampler = Batcher(visible, tokens, {"paper": 3}), StableSampler(network, 0)
    row = network.rows("paper", ["c"])
    batch = batcher.nodes("paper", row, sampler)
    assert batch.text_rows is not None
    shown = batch.text_rows[: batch.neighbor_texts].tolist()
    assert set(network.ids("paper", shown)) == drawn(network, "c", 3)
    key_row = network.rows("paper", ["4"])
    for number in range(20):  # neither end of a pair sees the other
        pair = batcher.pairs(np.stack([row, key_row], 1), np.uint64(number))
        assert pair.text_rows is not None
        assert int(key_row[0]) not in pair.text_rows[: pair.neighbor_texts].tolist()


@pytest.mark.parametrize("fan_out", [1, 1000])
def test_a_node_without_neighbours(fan_out: int) -> None:
    assert drawn(star(["a", "b", "c"], [("a", "b")]), "c", fan_out) == set()


@few
@given(networks(), st.integers(1, 4), st.integers(1, 5))
def test_a_hub_s_edges_some_at_a_time_draw_the_same(facts: Facts, fan_out: int, edges: int) -> None:
    with facts.built() as network:
        visible = VisibleNetwork.for_evaluation(network, split_of(network, SplitOptions()))
        schema = network.schema
        for edge_type in schema.edge_types:
            rows = np.arange(schema.counts[edge_type.center])
            asked = (visible, edge_type.center, edge_type.neighbor, rows, fan_out)
            whole = StableSampler(network, 0).sample(*asked)
            parts = StableSampler(network, 0, edges_at_once=edges).sample(*asked)
            for one, other in zip(whole, parts, strict=True):
                assert one.tolist() == other.tolist()
