"""Drawing one pair per query."""

from __future__ import annotations

import numpy as np

from heterformer.network.split.pairs import one_per_query


def test_each_edge_of_a_query_is_drawn_as_often() -> None:
    sources = np.repeat(np.arange(5000), 4)
    pairs = one_per_query(sources, np.tile(np.arange(4), 5000), np.random.default_rng(0))
    assert pairs[:, 0].tolist() == list(range(5000))
    drawn = np.bincount(pairs[:, 1], minlength=4)
    assert ((drawn - 1250) ** 2 / 1250).sum() < 16.3  # chi-square, 3 degrees of freedom, p = 0.001
