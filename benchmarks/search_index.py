"""Exact search against the approximate index: seconds per query, and how much of the answer is found.

Vectors of 384 numbers, memory-mapped: topics within fields in a space of 48 dimensions (vectors of texts fill
far fewer dimensions than they have numbers), a common offset, lengths that differ, a little noise. Queries
are drawn alike and are not among the vectors. Exact and approximate queries are asked in turn, after one of
each that reads the files into the system's cache; medians are taken. At the end each is asked once more with
its files out of that cache, as a search is that is the first in a while.

With ``--lancedb`` (pip install lancedb) its index of the same kind is measured too: as many lists, 8 bits per
number, proposals decided by the vectors themselves, and as many lists looked into as ours.

    python benchmarks/search_index.py [--nodes 200000 500000] [--queries 50] [--top 10] [--lancedb]
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heterformer.search.approximate import LISTS, ApproximateIndex, Sample, build_index
from heterformer.search.index import ExactIndex, Index, TopRows

WIDTH, DIMENSIONS, FIELDS, PER_TOPIC = 384, 48, 200, 40
CHUNK = 50_000


class Vectors:
    """Draws as many as are wanted from one and the same world of topics."""

    def __init__(self, nodes: int) -> None:
        self.rng = np.random.default_rng(0)
        self.axes = np.linalg.qr(self.rng.standard_normal((WIDTH, DIMENSIONS)))[0].T  # (48, 384)
        fields = self.rng.standard_normal((FIELDS, DIMENSIONS))
        topics = nodes // PER_TOPIC
        near = 0.6 * self.rng.standard_normal((topics, DIMENSIONS))
        self.topics = fields[self.rng.integers(FIELDS, size=topics)] + near
        self.offset = 0.3 * self.rng.standard_normal(WIDTH)

    def draw(self, count: int) -> NDArray[np.float32]:
        topic = self.topics[self.rng.integers(len(self.topics), size=count)]
        place = topic + 0.5 * self.rng.standard_normal((count, DIMENSIONS))
        vectors = place @ self.axes + self.offset + 0.03 * self.rng.standard_normal((count, WIDTH))
        return np.asarray(vectors * self.rng.uniform(0.85, 1.15, (count, 1)), dtype=np.float32)

    def write(self, path: Path, nodes: int) -> NDArray[Any]:
        out = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(nodes, WIDTH))
        for start in range(0, nodes, CHUNK):
            out[start : start + CHUNK] = self.draw(len(out[start : start + CHUNK]))
        out.flush()
        return mapped(path)


def mapped(path: Path) -> NDArray[Any]:
    return np.asarray(np.load(path, mmap_mode="r"))


def forgotten(path: Path) -> Path:
    """A file that nobody has mapped, put out of the system's cache."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return path


def seconds(index: Index, query: NDArray[np.float32], top: int) -> tuple[float, set[int]]:
    start = time.perf_counter()
    (result,) = index.search(query[None], top)
    return time.perf_counter() - start, set(result.rows.tolist())


class LanceIndex:
    """The same kind of index in LanceDB, which keeps a copy of the vectors beside it."""

    name = "lancedb"

    def __init__(self, folder: Path, matrix: NDArray[Any], lists: int, probes: int) -> None:
        import lancedb
        import pyarrow as pa
        from lancedb.index import IvfSq

        schema = pa.schema([("row", pa.int64()), ("vector", pa.list_(pa.float32(), WIDTH))])

        def batches() -> Iterator[pa.RecordBatch]:
            for start in range(0, len(matrix), CHUNK):
                part = matrix[start : start + CHUNK]
                vectors = pa.FixedSizeListArray.from_arrays(pa.array(part.reshape(-1)), WIDTH)
                rows = pa.array(np.arange(start, start + len(part)))
                yield pa.record_batch([rows, vectors], schema=schema)

        reader = pa.RecordBatchReader.from_batches(schema, batches())
        self.table = lancedb.connect(str(folder)).create_table("vectors", reader)
        settings = IvfSq(distance_type="dot", num_partitions=lists, sample_rate=64, max_iterations=10)
        self.table.create_index("vector", config=settings)
        self.probes = probes

    def search(self, queries: Any, k: int, without: Any = None) -> list[TopRows]:
        query = self.table.search(queries[0]).distance_type("dot").nprobes(self.probes).refine_factor(4)
        rows = query.limit(k).select(["row", "_distance"]).to_arrow()
        return [TopRows(rows["row"].to_numpy(), 1 - rows["_distance"].to_numpy())]


def measure_lancedb(
    folder: Path, matrix: NDArray[Any], ours: ApproximateIndex, queries: NDArray[np.float32], top: int
) -> None:
    start = time.perf_counter()
    index = LanceIndex(folder / "lance", matrix, ours.lists.nlist, ours.lists.nprobe)
    built = time.perf_counter() - start
    seconds(index, queries[0], top)
    taken, shares = [], []
    for query in queries[1:]:
        one, result = seconds(index, query, top)
        taken.append(one)
        shares.append(len(result & seconds(ExactIndex(matrix), query, top)[1]) / top)
    size = sum(file.stat().st_size for file in (folder / "lance").rglob("*") if file.is_file()) / 1e6
    print(f"          LanceDB: {statistics.median(taken):.4f} s per query, recall@{top} ", end="")
    print(f"{statistics.mean(shares):.3f}, {size:,.0f} MB, built in {built:.0f} s")


def measure(
    folder: Path, nodes: int, query_count: int, top: int, lancedb: bool
) -> tuple[float, float, float]:
    """Seconds of an exact and of an approximate query, and recall; the rest is printed."""
    world = Vectors(nodes)
    matrix, path = world.write(folder / "vectors.npy", nodes), folder / "vectors.faiss"
    rows = np.random.default_rng(1).choice(nodes, 200, replace=False)
    start = time.perf_counter()
    built_recall = build_index(path, matrix, Sample(matrix[rows], rows))
    built = time.perf_counter() - start
    exact = ExactIndex(matrix)
    queries = world.draw(query_count + 1)
    seconds(exact, queries[0], top)
    approximate = ApproximateIndex.open(path, matrix)
    seconds(approximate, queries[0], top)
    slow, fast, shares = [], [], []
    for query in queries[1:]:
        taken, true = seconds(exact, query, top)
        slow.append(taken)
        taken, result = seconds(approximate, query, top)
        fast.append(taken)
        shares.append(len(true & result) / len(true))
    a, b, recall = statistics.median(slow), statistics.median(fast), statistics.mean(shares)
    print(f"{nodes:>9,} vectors, {matrix.nbytes / 1e6:,.0f} MB")
    if lancedb:
        measure_lancedb(folder, matrix, approximate, queries, top)
    size = (path / LISTS).stat().st_size / 1e6
    del matrix, exact, approximate
    cold, _ = seconds(ExactIndex(mapped(forgotten(folder / "vectors.npy"))), queries[0], top)
    vectors = mapped(forgotten(folder / "vectors.npy"))
    cold_index, _ = seconds(ApproximateIndex.open(forgotten(path / LISTS).parent, vectors), queries[0], top)
    print(f"          exact: {a:.4f} s per query, {cold:.2f} s if files are not in the cache")
    print(f"          index: {b:.4f} s per query, {cold_index:.2f} s if files are not in the cache")
    print(f"          recall@{top} {recall:.3f} ({built_recall:.3f} estimated when built)")
    print(f"          {size:,.0f} MB, built in {built:.0f} s, the time of {built / a:,.0f} exact queries")
    return a, b, recall


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=[200_000, 500_000])
    parser.add_argument("--queries", type=int, default=50)
    parser.add_argument("--top", type=int, default=10)
    parser.add_argument("--lancedb", action="store_true")
    arguments = parser.parse_args()
    for nodes in arguments.nodes:
        with tempfile.TemporaryDirectory() as folder:
            exact, fast, recall = measure(
                Path(folder), nodes, arguments.queries, arguments.top, arguments.lancedb
            )
    ratio = f"{exact / fast:.0f} times faster than exact search"
    print(f"at {nodes:,} vectors the index is {ratio}, with a recall@{arguments.top} of {recall:.3f}")


if __name__ == "__main__":
    main()
