from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from heterformer.arrays import Ints
from heterformer.batches.assembly import SampledEdges
from heterformer.batches.batcher import Batcher
from heterformer.batches.sampling import SeededSampler
from heterformer.batches.second_hop import DrawnSecondHop
from heterformer.batches.visible import VisibleNetwork
from heterformer.network.schema import NodeType
from heterformer.network.tokens import open_tokens
from tests.learning import tiny_network, tiny_tokens
from tests.networks import Facts, few, networks, tokenizer


def as_lists(edges: Iterator[SampledEdges]) -> list[tuple[str, list[int], list[int], list[int]]]:
    return [(e.neighbor_type, e.center.tolist(), e.neighbor.tolist(), e.edge_type.tolist()) for e in edges]


@few
@given(networks(), st.integers(1, 3), st.randoms(use_true_random=False))
def test_edges_are_those_that_were_drawn(facts: Facts, count: int, random: object) -> None:
    with facts.built() as network:
        tokens = open_tokens(network, tokenizer())
        batcher = Batcher(VisibleNetwork.whole(network), tokens, second_hop=count)
        draw = batcher.further_neighbors(SeededSampler(np.uint64(5)))
        assert draw is not None
        drawn = DrawnSecondHop(network.schema, draw)
        for node_type in network.schema.text_rich:
            for _ in range(4):  # nodes that were met before among others, in any order, and twice
                rows = np.array(random.choices(range(network.schema.counts[node_type]), k=5))  # type: ignore[attr-defined]
                assert as_lists(drawn(node_type, rows)) == as_lists(iter(draw(node_type, rows)))


def test_each_node_is_drawn_once() -> None:
    network, asked = tiny_network(), list[int]()
    batcher = Batcher(VisibleNetwork.whole(network), tiny_tokens(), second_hop=3)
    draw = batcher.further_neighbors(SeededSampler(np.uint64(5)))
    assert draw is not None

    def noted(node_type: NodeType, rows: Ints) -> Iterator[SampledEdges]:
        asked.extend(rows.tolist())
        return iter(draw(node_type, rows))

    drawn = DrawnSecondHop(network.schema, noted)
    for rows in ([7, 3, 7], [3, 4], [], [199, 7, 4]):
        list(drawn("paper", np.array(rows, dtype=np.int64)))
    assert sorted(asked) == [3, 4, 7, 199]
