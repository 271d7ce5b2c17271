from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from heterformer.errors import InputError
from heterformer.search.approximate import LISTS, ApproximateIndex, Sample, build_index, has_faiss
from heterformer.search.index import ExactIndex
from tests.damage import DAMAGES, damaged_file, plain_files

COUNT = 6000
needs_faiss = pytest.mark.skipif(find_spec("faiss") is None, reason="FAISS is an optional dependency")


def clustered(count: int, seed: int) -> NDArray[np.float32]:
    """Vectors around 60 directions, of lengths that differ."""
    centers = np.random.default_rng(0).standard_normal((60, 24))
    rng = np.random.default_rng(seed)
    vectors = centers[rng.integers(60, size=count)] + 0.7 * rng.standard_normal((count, 24))
    return np.asarray(vectors * rng.uniform(0.7, 1.3, (count, 1)), dtype=np.float32)


def sample(matrix: NDArray[Any], size: int = 100) -> Sample:
    rows = np.random.default_rng(5).choice(len(matrix), size, replace=False)
    return Sample(matrix[rows].astype(np.float32), rows)


def measured(index: ApproximateIndex, matrix: NDArray[Any], queries: NDArray[np.float32], own: Any) -> float:
    """Recall@10, counted one by one."""
    shares = []
    for query, row in zip(queries, own, strict=True):
        scores = matrix.astype(np.float64) @ query
        true = [r for r in np.argsort(-scores, kind="stable").tolist() if r != row][:10]
        (found,) = index.search(query[None], 10, np.array([row]))
        shares.append(len(set(true) & set(found.rows.tolist())) / 10)
    return float(np.mean(shares))


@needs_faiss
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_the_recall_that_is_told_is_true(dtype: Any, tmp_path: Path) -> None:
    matrix = clustered(COUNT, 1).astype(dtype)
    asked = sample(matrix)
    recall = build_index(tmp_path / "index" / "paper.faiss", matrix, asked)
    index = ApproximateIndex.open(tmp_path / "index" / "paper.faiss", matrix)
    assert measured(index, matrix, asked.queries[50:], asked.own[50:]) == pytest.approx(recall, abs=0.003)
    assert recall > 0.95
    assert index.recall == recall
    assert index.lists.nprobe < index.lists.nlist == 77


@needs_faiss
def test_many_results_are_found_as_well_as_few(tmp_path: Path) -> None:
    """Recall is measured for ten; whoever wants five hundred must not get what a few lists hold."""
    matrix = clustered(COUNT, 1)
    asked = sample(matrix)
    build_index(tmp_path / "paper.faiss", matrix, asked)
    index = ApproximateIndex.open(tmp_path / "paper.faiss", matrix)
    for query in asked.queries[:10]:
        (found,), (true,) = index.search(query[None], 500), ExactIndex(matrix).search(query[None], 500)
        assert len(found.rows) == 500
        assert len(set(found.rows.tolist()) & set(true.rows.tolist())) > 450


@needs_faiss
def test_a_low_recall_is_reported_too(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((COUNT, 24)).astype(np.float32)
    # So low a target that a query looks into one list only.
    recall = build_index(tmp_path / "paper.faiss", matrix, sample(matrix), target_recall=0.0)
    assert 0 < recall < 0.5


@needs_faiss
def test_queries_of_another_type_have_no_row_of_their_own(tmp_path: Path) -> None:
    matrix, queries = clustered(COUNT, 1), clustered(100, 2)
    recall = build_index(tmp_path / "paper.faiss", matrix, Sample(queries, np.full(100, -1)))
    index = ApproximateIndex.open(tmp_path / "paper.faiss", matrix)
    found = [set(f.rows.tolist()) for f in index.search(queries[50:], 10)]
    true = [set(f.rows.tolist()) for f in ExactIndex(matrix).search(queries[50:], 10)]
    assert recall == pytest.approx(np.mean([len(a & b) / 10 for a, b in zip(found, true, strict=True)]))


@needs_faiss
def test_scores_are_the_exact_ones(tmp_path: Path) -> None:
    matrix, queries = clustered(COUNT, 1), clustered(20, 3)
    build_index(tmp_path / "paper.faiss", matrix, sample(matrix))
    index = ApproximateIndex.open(tmp_path / "paper.faiss", matrix)
    for query, found in zip(queries, index.search(queries, 7), strict=True):
        assert len(found.rows) == 7
        expected = matrix[found.rows].astype(np.float64) @ query.astype(np.float64)
        np.testing.assert_allclose(found.scores, expected, rtol=1e-9)
        assert (np.diff(found.scores) <= 0).all()


@needs_faiss
def test_some_rows_are_left_out(tmp_path: Path) -> None:
    matrix, queries = clustered(COUNT, 1), clustered(1, 3)
    build_index(tmp_path / "paper.faiss", matrix, sample(matrix))
    index = ApproximateIndex.open(tmp_path / "paper.faiss", matrix)
    (first,) = index.search(queries, 200)
    (rest,) = index.search(queries, 10, first.rows[:150])
    assert rest.rows.tolist() == first.rows[150:160].tolist()


@needs_faiss
@pytest.mark.parametrize("count", [1, 5, 90, 300])
def test_few_nodes(count: int, tmp_path: Path) -> None:
    matrix = clustered(count, 1)
    build_index(tmp_path / "paper.faiss", matrix, sample(matrix, min(count, 10)))
    index = ApproximateIndex.open(tmp_path / "paper.faiss", matrix)
    (found,) = index.search(matrix[:1], 400)
    assert 0 < len(found.rows) <= count
    assert len(set(found.rows.tolist())) == len(found.rows)


def searched(path: Path, matrix: NDArray[np.float32]) -> str | None:
    """Search all of an index; the sentence with which that is refused, if it is."""
    try:
        (found,) = ApproximateIndex.open(path, matrix).search(matrix[:1], len(matrix))
    except InputError as error:
        return str(error)
    assert found.rows.max() < len(matrix)
    return None


@needs_faiss
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_index_ends_in_a_sentence(damage: str, tmp_path: Path) -> None:
    """FAISS itself trusts a file, and may end in a signal."""
    matrix = clustered(300, 1)
    path = tmp_path / "paper.faiss"
    build_index(path, matrix, sample(matrix, 10))
    refused = 0
    names = [name for name in plain_files(path) if (name, damage) != ("digests.json", "gone")]
    for name in names:
        for seed in range(40 if (name, damage) == (LISTS, "flipped") else 1):
            with damaged_file(path / name, damage, seed):
                complaint = searched(path, matrix)
                if complaint is None:  # a byte of a vector in a list, which the check alone finds
                    assert (name, damage) == (LISTS, "flipped")
                    continue
                assert complaint.startswith(str(path / name))
                assert "is damaged" in complaint or "is missing" in complaint
                refused += 1
    assert refused >= len(names)


@needs_faiss
def test_what_says_where_the_lists_are_is_compared_on_opening(tmp_path: Path) -> None:
    matrix = clustered(300, 1)
    path = tmp_path / "paper.faiss"
    build_index(path, matrix, sample(matrix, 10))
    data = (path / LISTS).read_bytes()
    lists = ApproximateIndex.open(path, matrix).lists
    head = len(data) - 300 * (lists.code_size + 8)
    for place in [*range(0, head, 97), head - 1]:
        (path / LISTS).write_bytes(data[:place] + bytes([data[place] ^ 0x80]) + data[place + 1 :])
        with pytest.raises(InputError, match="its beginning has changed since it was written"):
            ApproximateIndex.open(path, matrix)


@needs_faiss
def test_rows_that_are_not_there_are_refused(tmp_path: Path) -> None:
    matrix = clustered(50, 1)
    path = tmp_path / "paper.faiss"
    build_index(path, matrix, sample(matrix, 10))
    data = (path / LISTS).read_bytes()
    (path / LISTS).write_bytes(data[:-3] + b"\x7f" + data[-2:])  # of a row's number
    with pytest.raises(
        InputError, match=r"lists\.faiss: .* \(it names rows that are not there\); remove this"
    ):
        ApproximateIndex.open(path, matrix).search(matrix[:1], 50)


@needs_faiss
def test_an_index_of_other_vectors_is_refused(tmp_path: Path) -> None:
    matrix = clustered(50, 1)
    build_index(tmp_path / "paper.faiss", matrix, sample(matrix, 10))
    with pytest.raises(InputError, match="it is no index of 49 vectors of 24 numbers"):
        ApproximateIndex.open(tmp_path / "paper.faiss", matrix[:-1])


def test_without_faiss_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    assert not has_faiss()
    matrix = clustered(50, 1)
    with pytest.raises(InputError) as caught:
        build_index(tmp_path / "paper.faiss", matrix, sample(matrix, 10))
    assert str(caught.value) == (
        "index is 'approximate', which needs FAISS: pip install 'heterformer[index]', or choose 'exact'."
    )
