from __future__ import annotations

import numpy as np
import pytest

from heterformer.network.lookup import Node
from heterformer.search.searcher import Searcher
from heterformer.serve.pair import compare_pair, shared_neighbors
from tests.serve.serving import served_run


@pytest.fixture(scope="module")
def searcher() -> Searcher:
    return Searcher(served_run())


def test_scores_are_those_of_the_vectors(searcher: Searcher) -> None:
    papers = searcher.store.matrix("paper").astype(np.float64)
    one, other = Node("paper", 3), Node("paper", 8)
    pair = compare_pair(searcher, one, other)
    assert pair["score"] == pytest.approx(papers[3] @ papers[8], rel=1e-5)
    lengths = np.linalg.norm(papers[3]) * np.linalg.norm(papers[8])
    assert pair["cosine"] == pytest.approx(papers[3] @ papers[8] / lengths, rel=1e-5)
    others = np.delete(papers, 3, axis=0) @ papers[3]
    assert pair["above"] == pytest.approx((others < papers[3] @ papers[8]).mean(), abs=0.01)


def test_neighbours_of_both_and_the_edge_between(searcher: Searcher) -> None:
    network = searcher.network
    sources, targets = network.edges("cites")
    one, other = Node("paper", int(sources[0])), Node("paper", int(targets[0]))
    assert compare_pair(searcher, one, other)["linked"] is True
    edges = set(zip(sources.tolist(), targets.tolist(), strict=True))
    edges |= {(b, a) for a, b in edges}
    expected = {b for a, b in edges if a == one.row} & {b for a, b in edges if a == other.row}
    groups = {group["type"]: group for group in shared_neighbors(network, one, other)}
    found = {node["id"] for node in groups.get("paper", {"nodes": []})["nodes"]}
    assert found == set(network.ids("paper", sorted(expected)))
    far = next(
        row for row in range(len(network.ids("paper"))) if (one.row, row) not in edges and row != one.row
    )
    assert compare_pair(searcher, one, Node("paper", far))["linked"] is False


def test_nodes_of_two_types(searcher: Searcher) -> None:
    pair = compare_pair(searcher, Node("paper", 0), Node("author", 0))
    assert -1 <= pair["cosine"] <= 1
    assert 0 <= pair["above"] <= 1
