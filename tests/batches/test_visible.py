"""What is taken away from a network, and that nothing else is."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from heterformer.batches.visible import VisibleAdjacency, VisibleNetwork
from heterformer.network.adjacency import Adjacency
from heterformer.network.split.options import SplitOptions
from heterformer.network.split.split import Split
from heterformer.network.store import Network
from tests.networks import Facts, few, networks, split_of

SPLITS = st.builds(SplitOptions, hold_out=st.sampled_from([0.0, 0.25]), seed=st.integers(0, 3))


@few
@given(st.lists(st.integers(0, 6), min_size=1), st.data())
def test_rank_and_position_are_inverse(degrees: list[int], data: st.DataObject) -> None:
    total = sum(degrees)
    gone = sorted(data.draw(st.sets(st.integers(0, max(total - 1, 0)), max_size=total)))
    indptr = np.concatenate([[0], np.cumsum(degrees)]).astype(np.int64)
    adjacency = Adjacency(indptr, np.zeros(total, dtype=np.int32), np.zeros(total, dtype=np.int16))
    visible = VisibleAdjacency(adjacency, np.array(gone, dtype=np.int64))
    left = np.array([p for p in range(total) if p not in gone], dtype=np.int64)
    ranks = np.arange(len(left))
    assert visible.rank(left).tolist() == ranks.tolist()
    assert visible.position(ranks).tolist() == left.tolist()
    counts = [sum(a <= p < b for p in left) for a, b in itertools.pairwise(indptr)]
    assert visible.counts(np.arange(len(degrees))).tolist() == counts


def entries(network: Network, visible: VisibleNetwork) -> set[tuple[str, int, str, int, int]]:
    """All that can be seen: (centre type, centre, neighbour type, neighbour, edge type)."""
    found = set()
    for center in network.schema.node_types:
        for neighbor in network.schema.neighbor_types_of(center):
            seen = visible.adjacency(center, neighbor)
            adjacency = seen.adjacency
            centers = np.repeat(np.arange(len(adjacency.degrees)), adjacency.degrees)
            for entry in set(range(len(centers))) - set(seen.gone.tolist()):
                nodes = (center, int(centers[entry]), neighbor, int(adjacency.neighbor[entry]))
                found.add((*nodes, int(adjacency.edge_type[entry])))
    return found


def secret(network: Network, split: Split, hide: bool, entry: tuple[str, int, str, int, int]) -> bool:
    center, row, neighbor, other, _ = entry
    ends = {(center, row), (neighbor, other)}
    relation = network.schema.predicted[0]
    pairs = [{(relation.source, q), (relation.target, k)} for q, k in split.held_out.tolist()]
    hidden = {(t, r) for t, rows in split.hidden.items() for r in rows.tolist()} if hide else set()
    return ends in pairs or bool(ends & hidden)


@few
@given(networks(), SPLITS)
def test_exactly_the_secret_edges_are_gone(facts: Facts, options: SplitOptions) -> None:
    with facts.built() as network:
        split = split_of(network, options)
        every = entries(network, VisibleNetwork.whole(network))
        assert len(every) == 2 * sum(len(facts.edges(r)) for r in facts.relations)
        for visible, hide in (
            (VisibleNetwork.for_training(network, split), True),
            (VisibleNetwork.for_evaluation(network, split), False),
        ):
            expected = {e for e in every if not secret(network, split, hide, e)}
            assert entries(network, visible) == expected
