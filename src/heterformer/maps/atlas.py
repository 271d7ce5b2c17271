"""The map as one Parquet table for Apple's embedding-atlas, which opens it as it is.

    embedding-atlas out.parquet --text name --x x --y y --neighbors neighbors

A row for each node: type, id, name, label, x, y and ``neighbors``, a struct of the nearest nodes of its type
(``ids``, which are rows of the table from 0, and ``distances``, one minus the cosine).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from heterformer.files import new_file
from heterformer.maps.layout import Layout
from heterformer.maps.projection import NODES_AT_ONCE, directions_of
from heterformer.network.labels import label_lists
from heterformer.network.schema import NodeType
from heterformer.progress import progress_bar
from heterformer.search.index import Index, Matrix
from heterformer.search.store import SearchStore

NEIGHBORS = 10
INDEX_FROM = 20_000  # nodes: from here on an index is built sooner than every node is compared with all
NEAREST = pa.struct([("ids", pa.list_(pa.int64())), ("distances", pa.list_(pa.float32()))])
SCHEMA = pa.schema(
    [
        ("type", pa.string()),
        ("id", pa.string()),
        ("name", pa.string()),
        ("label", pa.string()),
        ("x", pa.float32()),
        ("y", pa.float32()),
        ("neighbors", NEAREST),
    ]
)


def write_atlas(
    store: SearchStore, layout: Layout, out: Path, neighbors: int = NEIGHBORS, index_from: int = INDEX_FROM
) -> Path:
    """Write the table. Its rows are the nodes of each type in network order, type after type.

    Neighbours of nodes of a type that has ``index_from`` of them or more are those that an index finds.
    """
    total = sum(len(places) for places in layout.places.values())
    with (
        new_file(out) as partial,
        pq.ParquetWriter(partial, SCHEMA, compression="zstd") as writer,
        progress_bar("writing the table", total, "nodes") as bar,
    ):
        start = 0
        for node_type in store.types:
            index = store.index(node_type, "auto", index_from)
            for table in _tables(store, layout, index, node_type, start, neighbors):
                writer.write_table(table)
                bar.advance(len(table))
            start += len(layout.places[node_type])
    return out


def _tables(
    store: SearchStore, layout: Layout, index: Index, node_type: NodeType, start: int, neighbors: int
) -> Iterator[pa.Table]:
    network, places = store.network, layout.places[node_type]
    labels = label_lists(network, node_type)
    names = network.name_series(node_type)
    for low in range(0, len(places), NODES_AT_ONCE):
        rows = np.arange(low, min(low + NODES_AT_ONCE, len(places)))
        columns = [
            pa.array([node_type] * len(rows), pa.string()),
            network.id_series(node_type)[low : rows[-1] + 1].to_arrow().cast(pa.string()),
            names[low : rows[-1] + 1].to_arrow().cast(pa.string()),
            _joined(labels, low, len(rows)),
            pa.array(places[rows, 0], pa.float32()),
            pa.array(places[rows, 1], pa.float32()),
            _nearest(store.matrix(node_type), index, rows, start, neighbors),
        ]
        yield pa.table(columns, schema=SCHEMA)


def _joined(labels: pl.Series | None, low: int, count: int) -> pa.Array:
    """The labels of some nodes, each one text: a colour tells one value."""
    if labels is None:
        return pa.nulls(count, pa.string())
    joined = labels[low : low + count].list.join("; ")
    return pl.select(pl.when(joined != "").then(joined)).to_series().to_arrow().cast(pa.string())


def _nearest(
    matrix: Matrix, index: Index, rows: np.ndarray[tuple[int], np.dtype[np.int64]], start: int, count: int
) -> pa.Array:
    """What a search with each node finds among its own type, the closest direction first."""
    queries = matrix[rows[0] : rows[-1] + 1].astype(np.float32)
    nearest = index.search(queries, count + 1)
    entries = []
    for row, query, best in zip(rows, directions_of(queries), nearest, strict=True):
        others = best.rows[best.rows != row][:count]
        distances = np.clip(1 - directions_of(matrix[others]) @ query, 0, 2)
        order = np.argsort(distances, kind="stable")
        entries.append({"ids": (others[order] + start).tolist(), "distances": distances[order].tolist()})
    return pa.array(entries, NEAREST)
