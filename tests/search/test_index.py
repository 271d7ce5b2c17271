from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from heterformer.search.index import ExactIndex, TopK
from tests.networks import few


def sorted_rows(matrix: NDArray[Any], query: NDArray[Any], without: set[int]) -> list[int]:
    """Best first, equal ones by row: what a search must give."""
    scores = matrix.astype(np.float64) @ query.astype(np.float64)
    return [int(row) for row in np.lexsort((np.arange(len(matrix)), -scores)) if row not in without]


@few
@given(
    st.integers(1, 60),
    st.integers(1, 70),
    st.integers(1, 80),
    st.sampled_from([np.float32, np.float16]),
    st.sampled_from([1, 3, 16, 100]),
    st.integers(0, 99),
)
def test_exact_search_is_a_sort(n: int, k: int, block: int, dtype: Any, values: int, seed: int) -> None:
    """Small whole numbers give exact scores, and the fewer there are the more ties."""
    rng = np.random.default_rng(seed)
    matrix = rng.integers(-values, values + 1, (n, 5)).astype(dtype)
    queries = rng.integers(-3, 4, (4, 5)).astype(np.float32)
    without = rng.choice(n, rng.integers(n + 1), replace=False)
    found = ExactIndex(matrix, block).search(queries, k, without)
    for query, one in zip(queries, found, strict=True):
        assert one.rows.tolist() == sorted_rows(matrix, query, set(without.tolist()))[:k]
        assert one.scores.tolist() == [float(matrix[row].astype(np.float64) @ query) for row in one.rows]


@pytest.mark.parametrize("block", [7, 64, 1000])
def test_equal_vectors_tie_whatever_the_products_round_to(block: int) -> None:
    """Products of other shapes round otherwise, and must not decide; most so where terms cancel out."""
    rng = np.random.default_rng(0)
    vector, query = rng.standard_normal((2, 384)).astype(np.float32)
    query -= vector * (vector @ query / (vector @ vector))
    best = TopK(np.tile(vector, (500, 1)), query, 20)
    for start in range(0, 500, block):
        exact = np.full(len(best.matrix[start : start + block]), vector @ query)
        best.update(start, exact + np.linspace(-1e-5, 1e-5, len(exact), dtype=np.float32))
    assert best.top.rows.tolist() == list(range(20))
    assert len(set(best.top.scores.tolist())) == 1


def test_random_vectors_in_blocks() -> None:
    rng = np.random.default_rng(1)
    matrix = rng.standard_normal((3000, 32)).astype(np.float32)
    queries = rng.standard_normal((5, 32)).astype(np.float32)
    for query, found in zip(queries, ExactIndex(matrix, block=128).search(queries, 10), strict=True):
        assert found.rows.tolist() == sorted_rows(matrix, query, set())[:10]


def test_a_mapped_matrix_is_read_some_rows_at_a_time(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    np.save(tmp_path / "m.npy", rng.standard_normal((1000, 8)).astype(np.float16))
    mapped = np.load(tmp_path / "m.npy", mmap_mode="r")

    class Watched(np.ndarray[Any, Any]):
        largest = 0

        def __getitem__(self, key: Any) -> Any:
            part = np.asarray(self).__getitem__(key)
            Watched.largest = max(Watched.largest, part.size)
            return part

    (found,) = ExactIndex(mapped.view(Watched), block=100).search(np.ones((1, 8), dtype=np.float32), 5)
    assert found.rows.tolist() == sorted_rows(np.asarray(mapped), np.ones(8), set())[:5]
    assert 0 < Watched.largest <= 110 * 8


def test_nothing_to_find() -> None:
    (found,) = ExactIndex(np.ones((3, 2), dtype=np.float32)).search(
        np.ones((1, 2), dtype=np.float32), 5, np.array([0, 1, 2])
    )
    assert (len(found.rows), len(found.scores)) == (0, 0)
