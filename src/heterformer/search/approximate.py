"""Approximate search with FAISS, for types of so many nodes that exact search takes noticeable time.

Vectors are grouped by direction into inverted lists and stored there with 8 bits per number, a quarter of
their size. A query looks into the nearest lists only; the file is memory-mapped, so no others are read. What
the lists propose is decided by exact inner products with the vectors themselves.
"""

from __future__ import annotations

from math import isqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from heterformer.errors import InputError
from heterformer.files import replace_file
from heterformer.progress import progress_bar
from heterformer.search.index import BLOCK, NONE, ExactIndex, Found, Matrix, Queries, Rows, best_of

APPROXIMATE_FROM = 1_000_000  # nodes; benchmarks/search_index.py has the figures
PER_LIST = 64  # vectors that a list's direction is learnt from
PROPOSED, FEWEST = 4, 100  # proposals per result wanted and at least, for 8 bits do not tell all apart
TARGET_RECALL = 0.99  # that decides how many lists a query looks into
RECALL_AT = 10


class Sample(NamedTuple):
    """Queries that recall is measured with."""

    queries: Queries
    own: Rows  # the row of each query if it is a vector of the very type, to be left out; else -1


class ApproximateIndex:
    """FAISS proposes, exact inner products decide."""

    name = "approximate"

    def __init__(self, lists: Any, matrix: Matrix) -> None:
        self.lists, self.matrix = lists, matrix

    @classmethod
    def open(cls, path: Path, matrix: Matrix) -> ApproximateIndex:
        """Memory-mapped: only what a query looks into is read."""
        faiss = _faiss()
        return cls(faiss.read_index(str(path), faiss.IO_FLAG_MMAP), matrix)

    def search(self, queries: Queries, k: int, without: Rows = NONE) -> list[Found]:
        faiss = _faiss()
        queries = np.ascontiguousarray(queries, dtype=np.float32)
        excluded = faiss.IDSelectorBatch(np.asarray(without, dtype=np.int64))
        selector = {"sel": faiss.IDSelectorNot(excluded)} if len(without) else {}
        # As many lists as gave the recall that was measured, and more of them for more results.
        lists = min(self.lists.nprobe * max(1, (k + len(without)) // RECALL_AT), self.lists.nlist)
        options = faiss.SearchParametersIVF(nprobe=lists, **selector)
        count = min(max(PROPOSED * k, FEWEST), len(self.matrix))
        _, proposed = self.lists.search(queries, count, params=options)  # (Q, count), -1 where there are none
        return [
            best_of(self.matrix, query, rows[rows >= 0], k)
            for query, rows in zip(queries, proposed, strict=True)
        ]


def build_index(path: Path, matrix: Matrix, sample: Sample, target_recall: float = TARGET_RECALL) -> float:
    """Write the index of one type's vectors to ``path`` and return its recall@10 against exact search.

    One half of the sample decides how many lists a query looks into, the other half is what recall is
    measured with.
    """
    faiss = _faiss()
    lists = _filled(faiss, matrix)
    true = ExactIndex(matrix).search(sample.queries, RECALL_AT + 1)
    index, half = ApproximateIndex(lists, matrix), len(sample.queries) // 2
    lists.nprobe = 1
    while lists.nprobe < lists.nlist and _recall(index, sample, true, slice(0, half)) < target_recall:
        lists.nprobe = min(2 * lists.nprobe, lists.nlist)
    recall = _recall(index, sample, true, slice(half, None))
    path.parent.mkdir(parents=True, exist_ok=True)
    with replace_file(path) as partial:
        faiss.write_index(lists, str(partial))
    return recall


def _filled(faiss: Any, matrix: Matrix) -> Any:
    count, width = matrix.shape
    lists = faiss.IndexIVFScalarQuantizer(
        faiss.IndexFlatIP(width),
        width,
        max(1, min(isqrt(count), count // PER_LIST)),
        faiss.ScalarQuantizer.QT_8bit,
        faiss.METRIC_INNER_PRODUCT,
        False,  # the vectors themselves, not their differences from the list's direction
    )
    some = np.linspace(0, count - 1, min(count, PER_LIST * lists.nlist)).astype(np.int64)
    with progress_bar("indexing", 2 * count) as bar:
        lists.train(_floats(matrix[some]))
        bar.advance(count)
        for start in range(0, count, BLOCK):
            block = matrix[start : start + BLOCK]
            lists.add(_floats(block))
            bar.advance(len(block))
    return lists


def _floats(vectors: Matrix) -> Queries:
    return np.ascontiguousarray(vectors, dtype=np.float32)


def _recall(index: ApproximateIndex, sample: Sample, true: list[Found], part: slice) -> float:
    """The share of the exact search's first ten that the index finds too; a query does not find itself."""
    found = index.search(sample.queries[part], RECALL_AT + 1)
    shares = []
    for own, exact, approximate in zip(sample.own[part], true[part], found, strict=True):
        wanted = exact.rows[exact.rows != own][:RECALL_AT]
        got = approximate.rows[approximate.rows != own][:RECALL_AT]
        shares.append(np.isin(wanted, got).sum() / max(len(wanted), 1))
    return float(np.mean(shares))


def has_faiss() -> bool:
    """Whether the optional dependency is there."""
    try:
        _faiss()
    except InputError:
        return False
    return True


def _faiss() -> Any:
    try:
        import faiss
    except ImportError:
        wanted = "an approximate index needs FAISS, which is not installed"
        raise InputError(f"{wanted}: pip install 'heterformer[index]', or use --index exact.") from None
    return faiss
