"""The columns of a stored network's nodes: one Arrow file per type, validated before it is trusted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from heterformer.errors import InputError
from heterformer.files import damaged
from heterformer.network.adjacency import REBUILD
from heterformer.network.columns import fits_type
from heterformer.network.schema import NodeType, Schema
from heterformer.stored import as_series, read_arrow, validated
from heterformer.untrusted import short_repr

PART = 4096  # rows of a column that are validated at a time


class StoredNodes:
    """The node tables in a network's folder, memory-mapped; one is opened when it is asked for."""

    def __init__(self, network: Path, schema: Schema) -> None:
        self.network = network
        self.schema = schema
        self._tables: dict[NodeType, pa.Table] = {}
        self._validated: set[tuple[NodeType, str]] = set()  # columns
        self._validated_parts: dict[tuple[NodeType, str], set[int]] = {}  # of other columns

    def check_type(self, node_type: NodeType) -> None:
        """Refuse a type that the network does not have."""
        if node_type not in self.schema.counts:
            known = ", ".join(map(repr, self.schema.node_types))
            raise InputError(f"{self.network}: no node type {short_repr(node_type)}, the types are {known}.")

    def columns(self, node_type: NodeType) -> tuple[str, ...]:
        """The columns of a type."""
        return tuple(self._table(node_type).column_names)

    def column(self, node_type: NodeType, name: str) -> pa.ChunkedArray:
        """A whole column as Arrow."""
        values = self._table(node_type).column(name)
        if (node_type, name) not in self._validated:
            validated(values, self._file(node_type), REBUILD)
            self._validated.add((node_type, name))
        return values

    def series(self, node_type: NodeType, name: str) -> pl.Series:
        """A whole column as a polars series."""
        return as_series(self.column(node_type, name), self._file(node_type), REBUILD)

    def values(self, node_type: NodeType, name: str, rows: Iterable[int] | None = None) -> list[Any]:
        """Values of a column: all of them, or those of some rows."""
        if name not in self.columns(node_type):
            raise InputError(f"{self.network}: node type {node_type!r} has no {name!r}.")
        if rows is None:
            return list(self.column(node_type, name).to_pylist())
        return self._some_values(node_type, name, self._checked_rows(node_type, rows))

    def batches(self, node_type: NodeType, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Columns in row order, all of them unless given, in batches of some thousand nodes."""
        table = self._table(node_type)
        table = table if columns is None else table.select(list(columns))
        for batch in table.to_batches(max_chunksize=16_384):
            yield validated(batch, self._file(node_type), REBUILD)

    def _file(self, node_type: NodeType) -> Path:
        return self.network / "nodes" / f"{node_type}.arrow"

    def _table(self, node_type: NodeType) -> pa.Table:
        self.check_type(node_type)
        if node_type not in self._tables:
            path = self._file(node_type)
            table = read_arrow(path, REBUILD)
            _check_table(table, self.schema, node_type, path)
            self._tables[node_type] = table
        return self._tables[node_type]

    def _checked_rows(self, node_type: NodeType, rows: Iterable[int]) -> list[int]:
        count = self.schema.counts[node_type]
        checked = []
        for row in rows:
            if not isinstance(row, (int, np.integer)) or not 0 <= row < count:
                problem = f"row {short_repr(row)} of {node_type!r}, expected 0 to {count - 1:,}"
                raise InputError(f"{self.network}: {problem}; 'rows' gives those of ids.")
            checked.append(int(row))
        return checked

    def _some_values(self, node_type: NodeType, name: str, rows: Sequence[int]) -> list[Any]:
        """Values of some rows: of a long column only the parts that hold them are validated."""
        values = self._table(node_type).column(name)
        if (node_type, name) not in self._validated:
            seen = self._validated_parts.setdefault((node_type, name), set())
            for part in {row // PART for row in rows} - seen:
                validated(values.slice(part * PART, PART), self._file(node_type), REBUILD)
                seen.add(part)
        return [values[row].as_py() for row in rows]


def _check_table(table: pa.Table, schema: Schema, node_type: NodeType, path: Path) -> None:
    """Refuse a table of other columns or of another number of rows than the type has."""
    if table.num_rows != schema.counts[node_type]:
        problem = f"it has {table.num_rows:,} rows, expected {schema.counts[node_type]:,}"
        raise damaged(path, problem, REBUILD)
    missing = {"id", *(["text"] if node_type in schema.text_rich else [])} - set(table.column_names)
    if missing or len(set(table.column_names)) < table.num_columns:
        raise damaged(path, f"its columns are {short_repr(table.column_names)}", REBUILD)
    for field in table.schema:
        if not fits_type(field.name, field.type):
            raise damaged(path, f"its column {short_repr(field.name)} holds {field.type}", REBUILD)
