"""The nodes that a query is most likely linked to."""

from __future__ import annotations

import numpy as np
import pytest

from heterformer.arrays import Ints
from heterformer.batches.visible import VisibleNetwork
from heterformer.network.schema import NodeType
from heterformer.search.likelihood import most_likely, relation_to
from tests.learning import tiny_network
from tests.shop import shop

RNG = np.random.default_rng(0)
MATRIX = RNG.standard_normal((500, 8)).astype(np.float32)
QUERY = RNG.standard_normal(8).astype(np.float32)
ADDED = RNG.choice([0, 1, 2, 4], 500).astype(np.float32)


@pytest.mark.parametrize("block", [1, 7, 10_000])
@pytest.mark.parametrize(("rows", "without"), [(None, []), (None, [3, 7]), ([2, 3, 50, 51, 400], [50])])
def test_the_best_by_the_sum(block: int, rows: list[int] | None, without: list[int]) -> None:
    scores = (MATRIX @ QUERY).astype(np.float64) + ADDED
    among = np.setdiff1d(np.arange(500) if rows is None else rows, without)
    best = among[np.argsort(-scores[among], kind="stable")][:9]
    some: Ints | None = None if rows is None else np.array(rows)
    found = most_likely(MATRIX, QUERY, 9, ADDED, some, np.array(without, dtype=np.int64), block)
    assert found.rows.tolist() == best.tolist()
    assert found.scores == pytest.approx(scores[best], rel=1e-5)


def test_equal_sums_are_in_the_order_of_rows() -> None:
    found = most_likely(
        np.ones((9, 2), np.float32), np.ones(2, np.float32), 4, np.ones(9, np.float32), block=2
    )
    assert found.rows.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(("node_type", "end"), [("item", 1), ("user", 0)])
def test_links_are_counted_at_the_nodes_end(node_type: NodeType, end: int) -> None:
    network = shop()
    relation = network.schema.relation("bought")
    counts = np.bincount(network.edges("bought")[end], minlength=network.schema.counts[node_type])
    links = VisibleNetwork.whole(network).log_links(node_type, relation)
    assert links == pytest.approx(np.log(1 + counts))


def test_of_a_relation_within_a_type_those_of_targets_count() -> None:
    relation = relation_to(tiny_network(), "paper")
    assert relation is not None
    cited = np.bincount(tiny_network().edges("cites")[1], minlength=200)
    links = VisibleNetwork.whole(tiny_network()).log_links("paper", relation)
    assert links == pytest.approx(np.log(1 + cited))
    assert relation_to(tiny_network(), "author") is None
