from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heterformer.arrays import bisect_rows, ranges, share_of
from tests.networks import few


@few
@given(st.lists(st.lists(st.integers(0, 9)), min_size=1), st.data())
def test_bisect_rows_is_bisection_in_each_row(rows: list[list[int]], data: st.DataObject) -> None:
    values = np.array([v for row in rows for v in sorted(row)], dtype=np.int64)
    ends = np.cumsum([len(row) for row in rows])
    starts = ends - [len(row) for row in rows]
    wanted = np.array([data.draw(st.integers(-1, 10)) for _ in rows])
    expected = [s + np.searchsorted(values[s:e], w) for s, e, w in zip(starts, ends, wanted, strict=True)]
    assert bisect_rows(values, starts, ends, wanted).tolist() == expected


@few
@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 5))))
def test_ranges_are_laid_end_to_end(spans: list[tuple[int, int]]) -> None:
    start, length = np.array(spans, dtype=np.int64).reshape(-1, 2).T
    assert ranges(start, start + length).tolist() == [p for s, n in spans for p in range(s, s + n)]


@pytest.mark.parametrize(("count", "world_size"), [(10, 1), (10, 2), (7, 3), (2, 3), (0, 2), (64, 8)])
def test_shares_are_even_and_complete(count: int, world_size: int) -> None:
    parts = [list(range(count))[share_of(count, rank, world_size)] for rank in range(world_size)]
    assert [thing for part in parts for thing in part] == list(range(count))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
