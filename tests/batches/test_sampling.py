"""Neighbour sampling: real edges, uniform, without replacement, the same whenever asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heterformer.batches.randomness import stream_key
from heterformer.batches.sampling import sample_neighbors
from heterformer.batches.visible import VisibleAdjacency
from heterformer.network.adjacency import Adjacency
from tests.networks import few

CENTERS, NODES, EDGE_TYPES = 4, 7, 3
EDGE = st.tuples(st.integers(0, CENTERS - 1), st.integers(0, NODES - 1), st.integers(0, EDGE_TYPES - 1))
Edge = tuple[int, int, int]


@st.composite
def visible_adjacencies(draw: st.DrawFn) -> tuple[VisibleAdjacency, set[Edge]]:
    """Random entries of which some are gone, and the edges that are left."""
    edges = sorted(draw(st.sets(EDGE, max_size=50)))
    gone = draw(st.sets(st.integers(0, max(len(edges) - 1, 0)), max_size=len(edges)))
    columns = np.array(edges, dtype=np.int64).reshape(-1, 3)
    parts = [(t, *columns[columns[:, 2] == t, :2].T) for t in range(EDGE_TYPES)]
    adjacency = Adjacency.from_edges(parts, CENTERS, NODES, EDGE_TYPES)
    left = {edge for number, edge in enumerate(edges) if number not in gone}
    return VisibleAdjacency(adjacency, np.array(sorted(gone), dtype=np.int64)), left


def star(degree: int, centers: int = 1) -> VisibleAdjacency:
    """Centres that all have the same neighbours, 0 to ``degree - 1``."""
    edges = (0, np.repeat(np.arange(centers), degree), np.tile(np.arange(degree), centers))
    return VisibleAdjacency(Adjacency.from_edges([edges], centers, degree, 1), np.empty(0, dtype=np.int64))


@few
@given(visible_adjacencies(), st.integers(1, 9), st.integers(0, 99), st.data())
def test_a_sample_is_of_distinct_visible_edges_and_as_large_as_can_be(
    case: tuple[VisibleAdjacency, set[Edge]], fan_out: int, key: int, data: st.DataObject
) -> None:
    visible, edges = case
    centers = np.array(data.draw(st.lists(st.integers(0, CENTERS - 1), max_size=8)), dtype=np.int64)
    nodes = st.lists(st.integers(-1, NODES - 1), min_size=len(centers), max_size=len(centers))
    without = data.draw(st.none() | nodes.map(lambda rows: np.array(rows, dtype=np.int64)))
    sample = sample_neighbors(visible, centers, fan_out, stream_key(key), without)
    assert (np.diff(sample.center) >= 0).all()
    for position, center in enumerate(centers.tolist()):
        of_center = sample.center == position
        drawn = [
            (center, n, t)
            for n, t in zip(
                sample.neighbor[of_center].tolist(), sample.edge_type[of_center].tolist(), strict=True
            )
        ]
        avoided = -1 if without is None else without[position]
        possible = {e for e in edges if e[0] == center and e[1] != avoided}
        assert len(drawn) == len(set(drawn)) == min(fan_out, len(possible))
        assert set(drawn) <= possible


@few
@given(visible_adjacencies(), st.integers(1, 5), st.integers(0, 99))
def test_a_node_has_the_same_sample_in_whatever_company(
    case: tuple[VisibleAdjacency, set[Edge]], fan_out: int, key: int
) -> None:
    visible, _ = case
    together = sample_neighbors(visible, np.array([2, 0, 3, 1, 0]), fan_out, stream_key(key))
    for position, center in enumerate([2, 0, 3, 1, 0]):
        alone = sample_neighbors(visible, np.array([center]), fan_out, stream_key(key))
        assert alone.neighbor.tolist() == together.neighbor[together.center == position].tolist()
        assert alone.edge_type.tolist() == together.edge_type[together.center == position].tolist()


def chi_square(counts: Counter[tuple[int, ...]], outcomes: int, trials: int) -> float:
    expected = trials / outcomes
    missing = outcomes - len(counts)
    return sum((n - expected) ** 2 / expected for n in counts.values()) + missing * expected


TRIALS = 4000


def subsets_over_keys(avoid: bool) -> Counter[tuple[int, ...]]:
    """Which two of six neighbours one node draws, under many keys."""
    visible, one = star(6), np.array([0])
    without = np.array([3]) if avoid else None
    samples = (sample_neighbors(visible, one, 2, stream_key(key), without) for key in range(TRIALS))
    return Counter(tuple(sorted(s.neighbor.tolist())) for s in samples)


def subsets_over_nodes(avoid: bool) -> Counter[tuple[int, ...]]:
    """Which two of six neighbours many nodes draw, under one key."""
    without = np.full(TRIALS, 3) if avoid else None
    sample = sample_neighbors(star(6, TRIALS), np.arange(TRIALS), 2, stream_key(5), without)
    return Counter(tuple(sorted(pair)) for pair in sample.neighbor.reshape(TRIALS, 2).tolist())


@pytest.mark.parametrize("subsets", [subsets_over_keys, subsets_over_nodes])
@pytest.mark.parametrize("avoid", [False, True])
def test_every_subset_is_drawn_as_often(subsets: Callable[[bool], Counter[Any]], avoid: bool) -> None:
    counts = subsets(avoid)
    possible = set(combinations([n for n in range(6) if not (avoid and n == 3)], 2))
    assert set(counts) == possible
    limit = {15: 36.1, 10: 27.9}[len(possible)]  # chi-square, p = 0.001
    assert chi_square(counts, len(possible), TRIALS) < limit


def test_a_hub_is_sampled_from_all_of_its_neighbours() -> None:
    visible = star(100_000)
    drawn = np.concatenate(
        [sample_neighbors(visible, np.array([0]), 5, stream_key(k)).neighbor for k in range(400)]
    )
    counts = np.bincount(drawn // 10_000, minlength=10)
    assert ((counts - 200) ** 2 / 200).sum() < 27.9  # chi-square, 9 degrees of freedom, p = 0.001


def test_no_centres_give_an_empty_sample() -> None:
    sample = sample_neighbors(star(3), np.empty(0, dtype=np.int64), 2, stream_key(0))
    assert [len(part) for part in sample] == [0, 0, 0]
