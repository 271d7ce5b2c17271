"""Approximate search with FAISS, for types so large that exact search takes noticeable time.

Vectors are grouped by direction into inverted lists and stored there with 8 bits per number, a quarter of
their size. A query probes the nearest lists only; the file is memory-mapped, so no others are read. The
candidates from the lists are ranked by exact inner products with the vectors themselves.

FAISS trusts what it reads, and a damaged file could end in a signal. So the part before the lists, which
says where they are, is compared with its digest before FAISS opens a file; rows that the lists name are
checked as they are met, and ``heterformer check`` compares all of it.
"""

from __future__ import annotations

import json
from math import isqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from heterformer.arrays import Ints
from heterformer.digests import bytes_digest, check_sizes, write_digests
from heterformer.errors import InputError, OptionError
from heterformer.files import damaged, reading, replace_folder
from heterformer.progress import progress_bar
from heterformer.search.index import NONE, ROWS_AT_ONCE, ExactIndex, Matrix, Queries, TopRows, top_rows
from heterformer.search.options import SearchOptions

APPROXIMATE_FROM = 1_000_000  # nodes; benchmarks/search_index.py has the figures
PER_LIST = 64  # training vectors per list
CANDIDATES, MIN_CANDIDATES = 4, 100  # per result, and at least: 8 bits cannot rank close vectors
TARGET_RECALL = 0.99  # decides how many lists a query probes
RECALL_AT = 10
LISTS, HEAD = "lists.faiss", "head.json"  # an index is a folder with these and their digests
ROW_BYTES = 8  # of a row's number in a list, beside its vector
REMEDY = "remove this folder, and the next search builds it again"


class Sample(NamedTuple):
    """Queries for measuring recall."""

    queries: Queries
    own: Ints  # the row of each query that is itself a vector of the searched type, to be left out; else -1


class ApproximateIndex:
    """FAISS selects candidates, exact inner products rank them."""

    name = "approximate"

    def __init__(self, lists: Any, matrix: Matrix, path: Path, recall: float | None = None) -> None:
        self.lists, self.matrix, self.path = lists, matrix, path
        self.recall = recall  # measured when it was built; indexes of earlier versions do not say

    @classmethod
    def open(cls, path: Path, matrix: Matrix) -> ApproximateIndex:
        """Open memory-mapped: only the lists that a query probes are read."""
        faiss = _faiss()
        check_sizes(path, REMEDY)
        with reading(path / HEAD, REMEDY):
            head = json.loads((path / HEAD).read_text(encoding="utf-8"))
            size, digest = int(head["bytes"]), str(head["digest"])
            recall = float(head["recall"]) if "recall" in head else None
        if bytes_digest(path / LISTS, size) != digest:
            raise damaged(path / LISTS, "its beginning has changed since it was written", REMEDY)
        with reading(path / LISTS, REMEDY):
            lists = faiss.read_index(str(path / LISTS), faiss.IO_FLAG_MMAP)
            if (
                not isinstance(lists, faiss.IndexIVFScalarQuantizer)
                or (lists.ntotal, lists.d) != matrix.shape
            ):
                raise ValueError(
                    f"it is no index of {matrix.shape[0]:,} vectors of {matrix.shape[1]:,} numbers"
                )
        return cls(lists, matrix, path, recall)

    def search(self, queries: Queries, k: int, without: Ints = NONE) -> list[TopRows]:
        faiss = _faiss()
        queries = np.ascontiguousarray(queries, dtype=np.float32)
        excluded = faiss.IDSelectorBatch(np.asarray(without, dtype=np.int64))
        selector = {"sel": faiss.IDSelectorNot(excluded)} if len(without) else {}
        # As many lists as gave the recall that was measured, and more of them for more results.
        lists = min(self.lists.nprobe * max(1, (k + len(without)) // RECALL_AT), self.lists.nlist)
        options = faiss.SearchParametersIVF(nprobe=lists, **selector)
        count = min(max(CANDIDATES * k, MIN_CANDIDATES), len(self.matrix))
        _, candidates = self.lists.search(queries, count, params=options)  # (Q, count), padded with -1
        if candidates.size and not (candidates.min() >= -1 and candidates.max() < len(self.matrix)):
            raise damaged(self.path / LISTS, "it names rows that are not there", REMEDY)
        return [
            top_rows(self.matrix, query, rows[rows >= 0], k)
            for query, rows in zip(queries, candidates, strict=True)
        ]


def build_index(path: Path, matrix: Matrix, sample: Sample, target_recall: float = TARGET_RECALL) -> float:
    """Write the index of one type's vectors into the folder ``path``, and return its recall@10.

    One half of the sample decides how many lists a query probes, the other half measures recall.
    """
    faiss = _faiss()
    lists = _trained_lists(faiss, matrix)
    exact = ExactIndex(matrix).search(sample.queries, RECALL_AT + 1)
    index, half = ApproximateIndex(lists, matrix, path), len(sample.queries) // 2
    lists.nprobe = 1
    while lists.nprobe < lists.nlist and _recall(index, sample, exact, slice(0, half)) < target_recall:
        lists.nprobe = min(2 * lists.nprobe, lists.nlist)
    recall = _recall(index, sample, exact, slice(half, None))
    with replace_folder(path) as partial:
        faiss.write_index(lists, str(partial / LISTS))
        size = (partial / LISTS).stat().st_size - lists.ntotal * (lists.code_size + ROW_BYTES)
        head = {"bytes": size, "digest": bytes_digest(partial / LISTS, size), "recall": recall}
        (partial / HEAD).write_text(json.dumps(head), encoding="utf-8")
        write_digests(partial)
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
    with progress_bar("indexing", 2 * count, "vectors") as bar:
        lists.train(_floats(matrix[training_rows]))
        bar.advance(count)
        for start in range(0, count, ROWS_AT_ONCE):
            block = matrix[start : start + ROWS_AT_ONCE]
            lists.add(_floats(block))
            bar.advance(len(block))
    return lists


def _floats(vectors: Matrix) -> Queries:
    return np.ascontiguousarray(vectors, dtype=np.float32)


def _recall(index: ApproximateIndex, sample: Sample, exact: list[TopRows], part: slice) -> float:
    """Recall@10 against exact search; a query's own row does not count."""
    approximate = index.search(sample.queries[part], RECALL_AT + 1)
    shares = []
    for own, true, result in zip(sample.own[part], exact[part], approximate, strict=True):
        relevant = true.rows[true.rows != own][:RECALL_AT]
        retrieved = result.rows[result.rows != own][:RECALL_AT]
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
