"""Sampling by priorities: in proportion to weights, and only what is allowed."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from heterformer.batches.priority import EdgeFilter, smallest_priorities
from heterformer.batches.randomness import stream_key
from heterformer.batches.sampling import sample_by_priority
from heterformer.batches.visible import VisibleAdjacency
from heterformer.network.adjacency import Adjacency
from heterformer.network.hashes import Hashes, mixed

NOTHING = np.empty(0, dtype=np.int64)
DRAWS = 4000


def star(weights: list[float] | None, degree: int, centers: int = 1) -> VisibleAdjacency:
    """Centres that all have the same neighbours, 0 to ``degree - 1``, with these weights."""
    edges = (0, np.repeat(np.arange(centers), degree), np.tile(np.arange(degree), centers))
    own = None if weights is None else np.tile(np.array(weights), centers)
    return VisibleAdjacency(Adjacency.from_edges([edges], centers, degree, 1, [own], [None]), NOTHING)


def drawn(view: VisibleAdjacency, fan_out: int, allowed: EdgeFilter = EdgeFilter()) -> Counter[int]:  # noqa: B008
    """How often each neighbour of the first centre is drawn, by many keys at once."""
    keys = np.array([stream_key(number) for number in range(DRAWS)], dtype=np.uint64)
    centers = np.zeros(DRAWS, dtype=np.int64)
    repeated = EdgeFilter(
        *(None if a is None else np.broadcast_to(a, DRAWS) for a in allowed[:2]), allowed.times
    )
    return Counter(sample_by_priority(view, centers, fan_out, keys, repeated).neighbor.tolist())


def test_one_neighbor_is_drawn_in_proportion_to_weights() -> None:
    counts = drawn(star([1.0, 2.0, 5.0, 0.0], 4), 1)
    assert counts.total() == DRAWS
    for neighbor, share in enumerate([0.125, 0.25, 0.625, 0.0]):
        deviation = (share * (1 - share) / DRAWS) ** 0.5
        assert abs(counts[neighbor] / DRAWS - share) <= 4 * deviation


def test_two_are_drawn_without_replacement_in_proportion_to_what_is_left() -> None:
    counts = drawn(star([1.0, 1.0, 2.0], 3), 2)
    assert counts.total() == 2 * DRAWS
    # 1 - P(2 is neither the first nor the second) = 1 - 2 * (1/4 * 1/3)
    assert abs(counts[2] / DRAWS - 5 / 6) < 4 * (5 / 36 / DRAWS) ** 0.5


def test_equal_weights_are_drawn_as_none() -> None:
    for weights in ([3.0] * 5, None):
        counts = drawn(star(weights, 5), 2)
        for neighbor in range(5):
            assert abs(counts[neighbor] / DRAWS - 0.4) < 4 * (0.24 / DRAWS) ** 0.5


def test_what_is_not_allowed_is_not_drawn() -> None:
    view = star(None, 5)
    without = drawn(view, 5, EdgeFilter(without=np.array(3)))
    assert set(without) == {0, 1, 2, 4}
    times = np.array([1.0, 2.0, 3.0, 4.0, -np.inf])
    assert set(drawn(view, 5, EdgeFilter(until=np.array(3.0), times=times))) == {0, 1, 2, 4}
    assert set(drawn(view, 5, EdgeFilter(until=np.array(-np.inf), times=times))) == {4}
    assert set(drawn(view, 5, EdgeFilter(np.array(4), np.array(1.5), times))) == {0}


@pytest.mark.parametrize("weights", [None, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]])
def test_blocks_of_any_size_give_the_same(weights: list[float] | None) -> None:
    view, centers = star(weights, 7, centers=4), np.array([3, 0, 0, 2])

    def numbers(place: np.ndarray, edges: np.ndarray) -> Hashes:
        return mixed(place.astype(np.uint64) * np.uint64(1000) + edges.astype(np.uint64))

    whole = smallest_priorities(view, centers, 3, numbers)
    assert np.bincount(whole[0]).tolist() == [3, 3, 3, 3]
    for size in (1, 5, 1000):
        again = smallest_priorities(view, centers, 3, numbers, edges_at_once=size)
        assert [a.tolist() for a in again] == [w.tolist() for w in whole]


def test_a_sample_does_not_depend_on_the_other_centers() -> None:
    view = star([1.0, 2.0, 3.0, 4.0], 4, centers=3)
    together = sample_by_priority(view, np.array([0, 1, 2]), 2, stream_key(5), EdgeFilter())
    alone = sample_by_priority(view, np.array([1]), 2, stream_key(5), EdgeFilter())
    assert alone.neighbor.tolist() == together.neighbor[together.center == 1].tolist()
