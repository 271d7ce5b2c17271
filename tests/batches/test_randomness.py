"""Random numbers as functions of what they are for."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from heterformer.batches.randomness import stream_key, uniform
from tests.networks import few


def test_keys_of_different_purposes_differ() -> None:
    purposes = [(p, s, e, t) for p in (1, 2) for s in range(10) for e in range(10) for t in range(10)]
    keys = {int(stream_key(*p)) for p in purposes} | {int(stream_key(*p[:2])) for p in purposes[::100]}
    assert len(keys) == len(purposes) + len(purposes[::100])
    assert stream_key(1, 2) != stream_key(2, 1)


@few
@given(st.lists(st.integers()))
def test_any_whole_numbers_make_a_key(parts: list[int]) -> None:
    assert stream_key(*parts) == stream_key(*parts)
    assert isinstance(stream_key(*parts), np.uint64)


def test_numbers_are_uniform_over_nodes_and_over_rounds() -> None:
    numbers = uniform(stream_key(3), np.arange(20_000), 5)
    assert numbers.shape == (20_000, 5)
    assert numbers.min() >= 0
    assert numbers.max() < 1
    for column in numbers.T:
        counts = np.histogram(column, bins=20, range=(0, 1))[0]
        assert ((counts - 1000) ** 2 / 1000).sum() < 43.8  # chi-square, 19 degrees of freedom, p = 0.001
    correlation = np.corrcoef(numbers.T) - np.eye(5)
    assert np.abs(correlation).max() < 0.03


def test_neighbouring_keys_and_nodes_have_nothing_in_common() -> None:
    one, next_key = (uniform(stream_key(k), np.arange(5000), 1)[:, 0] for k in (0, 1))
    assert abs(np.corrcoef(one, next_key)[0, 1]) < 0.05
    assert abs(np.corrcoef(one[:-1], one[1:])[0, 1]) < 0.05


@few
@given(st.lists(st.integers(0, 2**40), min_size=1), st.integers(1, 6))
def test_a_nodes_numbers_depend_on_itself_and_the_key_alone(nodes: list[int], rounds: int) -> None:
    together = uniform(stream_key(9), np.array(nodes), rounds)
    for row, node in enumerate(nodes):
        alone = uniform(stream_key(9), np.array([node]), rounds + 1)
        assert together[row].tolist() == alone[0, :rounds].tolist()
