"""Search among the rows that meet a filter."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from heterformer.arrays import Ints
from heterformer.search.filtered import best_among, search_among
from heterformer.search.filters import matching_rows
from heterformer.search.index import NONE, ExactIndex, TopRows
from heterformer.search.searcher import Searcher
from tests.learning import tiny_network
from tests.search.searching import tiny_run

RNG = np.random.default_rng(0)
MATRIX = RNG.standard_normal((500, 8)).astype(np.float32)
QUERY = RNG.standard_normal(8).astype(np.float32)


class Forgetful(ExactIndex):
    """An approximate index that overlooks every seventh row."""

    name = "approximate"
    calls = 0

    def search(self, queries: NDArray[Any], k: int, without: Ints = NONE) -> list[TopRows]:
        type(self).calls += 1
        return super().search(queries, k, np.union1d(without, np.arange(0, 500, 7)))


@pytest.mark.parametrize("count", [0, 3, 10, 77, 500])
def test_search_among_rows_is_exact(count: int) -> None:
    rows = np.sort(RNG.choice(500, count, replace=False))
    scores = MATRIX[rows].astype(np.float64) @ QUERY
    best = rows[np.argsort(-scores, kind="stable")]
    without = best[:1]
    index = ExactIndex(MATRIX)
    assert search_among(index, MATRIX, QUERY, 9, rows).rows.tolist() == best[:9].tolist()
    assert search_among(index, MATRIX, QUERY, 9, rows, without).rows.tolist() == best[1:10].tolist()
    assert best_among(MATRIX, QUERY, rows, 9, block=16).rows.tolist() == best[:9].tolist()
    # An index that may overlook some is not asked if the rows are few.
    assert search_among(Forgetful(MATRIX), MATRIX, QUERY, 9, rows).rows.tolist() == best[:9].tolist()


def test_an_index_is_asked_until_enough_results_meet_the_filter() -> None:
    order = np.argsort(-(MATRIX @ QUERY), kind="stable")
    rows = np.sort(order[250:])  # the worse half: the first results all fail the filter
    Forgetful.calls = 0
    found = search_among(Forgetful(MATRIX), MATRIX, QUERY, 10, rows, few=20)
    assert len(found.rows) == 10
    assert set(found.rows) <= set(rows)
    assert Forgetful.calls > 1
    # Where the index cannot find enough, search is exact.
    overlooked = np.arange(0, 500, 7)
    found = search_among(Forgetful(MATRIX), MATRIX, QUERY, 10, overlooked, few=20)
    assert found.rows.tolist() == best_among(MATRIX, QUERY, overlooked, 10).rows.tolist()


@cache
def searcher() -> Searcher:
    return Searcher(tiny_run())


@pytest.mark.parametrize(
    "where", ["time >= 2010", "label == 'nothing'", "subtopic is not null and id < 'p2'"]
)
def test_results_of_a_search_meet_its_filter(where: str) -> None:
    allowed = set(tiny_network().ids("paper", matching_rows(tiny_network(), "paper", where)))
    (everything,) = searcher().search("kernel methods", top=1000).rankings
    (some,) = searcher().search("kernel methods", top=1000, where=where).rankings
    assert [hit.id for hit in some.hits] == [hit.id for hit in everything.hits if hit.id in allowed]
    assert [hit.score for hit in some.hits] == [hit.score for hit in everything.hits if hit.id in allowed]
    assert some.candidates == len(allowed)


def test_a_filter_goes_with_a_node_and_with_its_neighbours_left_out() -> None:
    (author,) = tiny_network().ids("author", [3])
    options: dict[str, Any] = {"like": author, "like_type": "author", "top": 1000, "exclude_known": True}
    (everything,) = searcher().search(**options).rankings
    (some,) = searcher().search(**options, where="time >= 2010").rankings
    kept = set(tiny_network().ids("paper", matching_rows(tiny_network(), "paper", "time >= 2010")))
    assert [hit.id for hit in some.hits] == [hit.id for hit in everything.hits if hit.id in kept]
