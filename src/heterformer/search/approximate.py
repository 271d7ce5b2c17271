"""Approximate search with FAISS, for types of so many nodes that exact search takes noticeable time.

Vectors are grouped by direction into inverted lists and stored there with 8 bits per number, a quarter of
their size. A query probes the nearest lists only; the file is memory-mapped, so no others are read. The
candidates from the lists are ranked by exact inner products with the vectors themselves.
"""

from __future__ import annotations

from math import isqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from heterformer.errors import InputError, OptionError
from heterformer.files import replace_file
from heterformer.progress import progress_bar
from heterformer.search.index import BLOCK, NONE, ExactIndex, Matrix, Queries, Rows, TopRows, top_rows
from heterformer.search.options import SearchOptions

APPROXIMATE_FROM = 1_000_000  # nodes; benchmarks/search_index.py has the figures
PER_LIST = 64  # training vectors per list
CANDIDATES, MIN_CANDIDATES = 4, 100  # per result, and at least: 8 bits cannot rank close vectors
TARGET_RECALL = 0.99  # decides how many lists a query probes
RECALL_AT = 10


class Sample(NamedTuple):
    """Queries for measuring recall."""

    queries: Queries
    own: Rows  # the row of each query that is itself a vector of the searched type, to be left out; else -1


class ApproximateIndex:
    """FAISS selects candidates, exact inner products rank them."""

    name = "approximate"

    def __init__(self, lists: Any, matrix: Matrix) -> None:
        self.lists, self.matrix = lists, matrix

    @classmethod
    def open(cls, path: Path, matrix: Matrix) -> ApproximateIndex:
        """Open memory-mapped: only the lists that a query probes are read."""
        faiss = _faiss()
        return cls(faiss.read_index(str(path), faiss.IO_FLAG_MMAP), matrix)

    def search(self, queries: Queries, k: int, without: Rows = NONE) -> list[TopRows]:
        faiss = _faiss()
        queries = np.ascontiguousarray(queries, dtype=np.float32)
        excluded = faiss.IDSelectorBatch(np.asarray(without, dtype=np.int64))
        selector = {"sel": faiss.IDSelectorNot(excluded)} if len(without) else {}
        # As many lists as gave the recall that was measured, and more of them for more results.
        lists = min(self.lists.nprobe * max(1, (k + len(without)) // RECALL_AT), self.lists.nlist)
        options = faiss.SearchParametersIVF(nprobe=lists, **selector)
        count = min(max(CANDIDATES * k, MIN_CANDIDATES), len(self.matrix))
        _, candidates = self.lists.search(queries, count, params=options)  # (Q, count), padded with -1
        return [
            top_rows(self.matrix, query, rows[rows >= 0], k)
            for query, rows in zip(queries, candidates, strict=True)
        ]


def build_index(path: Path, matrix: Matrix, sample: Sample, target_recall: float = TARGET_RECALL) -> float:
    """Write the index of one type's vectors to ``path`` and return its recall@10 against exact search.

    One half of the sample decides how many lists a query probes, the other half measures recall.
    """
    faiss = _faiss()
    lists = _trained_lists(faiss, matrix)
    exact = ExactIndex(matrix).search(sample.queries, RECALL_AT + 1)
    index, half = ApproximateIndex(lists, matrix), len(sample.queries) // 2
    lists.nprobe = 1
    while lists.nprobe < lists.nlist and _recall(index, sample, exact, slice(0, half)) < target_recall:
        lists.nprobe = min(2 * lists.nprobe, lists.nlist)
    recall = _recall(index, sample, exact, slice(half, None))
    path.parent.mkdir(parents=True, exist_ok=True)
    with replace_file(path) as partial:
        faiss.write_index(lists, str(partial))
    return recall


def _trained_lists(faiss: Any, matrix: Matrix) -> Any:
    count, width = matrix.shape
    lists = faiss.IndexIVFScalarQuantizer(
        faiss.IndexFlatIP(width),
        width,
        max(1, min(isqrt(count), count // PER_LIST)),
        faiss.ScalarQuantizer.QT_8bit,
        faiss.METRIC_INNER_PRODUCT,
        False,  # quantize the vectors themselves, not their residuals
    )
    training_rows = np.linspace(0, count - 1, min(count, PER_LIST * lists.nlist)).astype(np.int64)
    with progress_bar("indexing", 2 * count) as bar:
        lists.train(_floats(matrix[training_rows]))
        bar.advance(count)
        for start in range(0, count, BLOCK):
            block = matrix[start : start + BLOCK]
            lists.add(_floats(block))
            bar.advance(len(block))
    return lists


def _floats(vectors: Matrix) -> Queries:
    return np.ascontiguousarray(vectors, dtype=np.float32)


def _recall(index: ApproximateIndex, sample: Sample, exact: list[TopRows], part: slice) -> float:
    """Recall@10 against exact search; a query's own row does not count."""
    approximate = index.search(sample.queries[part], RECALL_AT + 1)
    shares = []
    for own, true, found in zip(sample.own[part], exact[part], approximate, strict=True):
        relevant = true.rows[true.rows != own][:RECALL_AT]
        retrieved = found.rows[found.rows != own][:RECALL_AT]
        shares.append(np.isin(relevant, retrieved).sum() / max(len(relevant), 1))
    return float(np.mean(shares))


def has_faiss() -> bool:
    """Whether FAISS, an optional dependency, is installed."""
    try:
        _faiss()
    except InputError:
        return False
    return True


def _faiss() -> Any:
    try:
        import faiss
    except ImportError:
        problem = "is 'approximate', which needs FAISS: pip install 'heterformer[index]', or choose 'exact'."
        raise OptionError(SearchOptions, "index", problem) from None
    return faiss
