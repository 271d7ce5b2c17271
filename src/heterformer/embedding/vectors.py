"""Vectors of a whole network: a Parquet table, a folder of NumPy arrays, or one of Parquet parts.

Parts are what several processes wrote. The rows of a type in all of them, one after the other, are those of
the network; a manifest lists them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from heterformer.digests import DIGESTS, digests_text, seal_parquet, write_digests
from heterformer.embedding.vector_files import (
    AGAIN,
    KEY,
    MANIFEST,
    SEALED,
    is_vector,
    mapped_vectors,
    opened_folder,
    opened_table,
    table_schema,
)
from heterformer.errors import InputError
from heterformer.files import (
    damaged,
    readable,
    reading,
    remove_file,
    replace_file,
    replace_folder,
    write_text,
)
from heterformer.network.hashes import Hashes
from heterformer.network.schema import NodeType
from heterformer.precision import ComputedPrecision
from heterformer.stored import open_parquet, parquet_batches, read_json
from heterformer.untrusted import checked_path

ROWS = 16_384  # written or read at a time

Column = Literal["vector", "h0"]


@dataclass(frozen=True)
class Chunk:
    """Some nodes of one type: what is written next, or was read."""

    node_type: NodeType
    ids: Sequence[str]
    vectors: NDArray[Any]  # (n, d)
    signatures: Hashes  # (n,)
    extra: Mapping[str, NDArray[Any]]  # further vectors of each node, such as a textless node's h0


@dataclass(frozen=True)
class Layout:
    """What a writer must know before the first chunk."""

    counts: Mapping[NodeType, int]
    width: int
    dtype: np.dtype[Any]
    extra: Mapping[str, int]  # name to width; null for types that have none
    metadata: Mapping[str, Any]


def is_parquet(path: Path) -> bool:
    """Whether vectors of this name are a Parquet table."""
    return path.suffix.lower() == ".parquet"


def is_vectors_file(path: Path) -> bool:
    """Whether a file is a table of vectors that was written here."""
    return written_metadata(path) is not None


def written_metadata(path: Path) -> dict[str, Any] | None:
    """What the writer of a table noted in it, if it was written here."""
    try:
        with open_parquet(path) as file:
            content = (file.schema_arrow.metadata or {}).get(KEY)
            return None if content is None else dict(json.loads(content))
    except InputError:
        return None


def noted_metadata(path: Path) -> Mapping[str, Any] | None:
    """What the writer of a table or a folder of vectors noted; None of a table that was not written here."""
    return Vectors.open(path).metadata if path.is_dir() else written_metadata(path)


def noted_precision(path: Path) -> ComputedPrecision | None:
    """The precision that vectors were computed in, if they say so."""
    precision = (noted_metadata(path) or {}).get("precision")
    return next((known for known in get_args(ComputedPrecision) if known == precision), None)


def is_vectors_folder(path: Path) -> bool:
    """Whether a folder holds arrays or parts of vectors that were written here."""
    return (path / MANIFEST).is_file()


def part_name(number: int, count: int) -> str:
    """The file of one of several writers; names sort as the writers do."""
    return f"part-{number:05}-of-{count:05}.parquet"


def write_part(folder: Path, number: int, count: int, layout: Layout, chunks: Iterator[Chunk]) -> None:
    """Write one of several parts, unless it is there."""
    path = folder / part_name(number, count)
    if not path.exists():
        with replace_file(path) as partial:
            _write_parquet(partial, layout, chunks)


def join_parts(folder: Path, count: int, layout: Layout) -> None:
    """Write the manifest of all parts, which makes vectors of the folder."""
    parts = [part_name(number, count) for number in range(count)]
    types = [node_type for node_type, nodes in layout.counts.items() if nodes]
    manifest = {"types": types, "parts": parts, **layout.metadata}
    remove_file(folder / DIGESTS)  # of earlier vectors: a kill from here on leaves none that are wrong
    write_text(folder / MANIFEST, json.dumps(manifest, indent=1))
    write_text(folder / DIGESTS, digests_text(folder, [MANIFEST, *parts]))


def write_vectors(path: Path, layout: Layout, chunks: Iterator[Chunk]) -> None:
    """Write chunks as they come, type after type; the file or folder appears whole or not at all."""
    if is_parquet(path):
        with replace_file(path) as partial:
            _write_parquet(partial, layout, chunks)
    else:
        with replace_folder(path) as folder:
            _write_arrays(folder, layout, chunks)


def _write_parquet(path: Path, layout: Layout, chunks: Iterator[Chunk]) -> None:
    item = pa.from_numpy_dtype(layout.dtype)
    fields = [
        pa.field("id", pa.string()),
        pa.field("type", pa.string()),
        pa.field("vector", pa.list_(item, layout.width)),
        *(pa.field(name, pa.list_(item, width)) for name, width in layout.extra.items()),
        pa.field("signature", pa.uint64()),
    ]
    schema = pa.schema(fields, metadata={KEY: json.dumps(dict(layout.metadata)).encode(), SEALED: b""})
    # Vectors hardly compress and are all different: a dictionary of them only costs time.
    options = {"use_dictionary": ["type"], "compression": "zstd", "write_page_checksum": True}
    with pq.ParquetWriter(path, schema, **options) as writer:
        for chunk in chunks:
            columns = [
                pa.array(chunk.ids, pa.string()),
                pa.array([chunk.node_type] * len(chunk.ids), pa.string()),
                _lists(chunk.vectors, schema.field("vector").type),
                *(
                    _lists(chunk.extra[name], schema.field(name).type)
                    if name in chunk.extra
                    else pa.nulls(len(chunk.ids), schema.field(name).type)
                    for name in layout.extra
                ),
                pa.array(chunk.signatures),
            ]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))
    seal_parquet(path)


def _lists(values: NDArray[Any], kind: pa.DataType) -> pa.Array:
    flat = pa.array(np.ascontiguousarray(values).reshape(-1))
    return pa.FixedSizeListArray.from_arrays(flat, type=kind)


def _write_arrays(folder: Path, layout: Layout, chunks: Iterator[Chunk]) -> None:
    arrays: dict[str, NDArray[Any]] = {}
    written = dict.fromkeys(layout.counts, 0)

    def into(name: str, node_type: NodeType, width: int | None, dtype: Any) -> NDArray[Any]:
        if name not in arrays:
            shape = (layout.counts[node_type], *([] if width is None else [width]))
            arrays[name] = _new_array(folder / f"{name}.npy", shape, dtype)
        return arrays[name]

    for chunk in chunks:
        t = chunk.node_type
        part = slice(written[t], written[t] + len(chunk.ids))
        written[t] = part.stop
        into(t, t, layout.width, layout.dtype)[part] = chunk.vectors
        into(f"{t}.signatures", t, None, np.uint64)[part] = chunk.signatures
        for name, values in chunk.extra.items():
            into(f"{t}.{name}", t, values.shape[1], layout.dtype)[part] = values
        with (folder / f"{t}.ids.json").open("a", encoding="utf-8", newline="\n") as file:
            for place, node_id in enumerate(chunk.ids, part.start):
                file.write(("[" if place == 0 else ",\n") + json.dumps(node_id, ensure_ascii=False))
    for t in written:  # a type without nodes has an empty list
        with (folder / f"{t}.ids.json").open("a", encoding="utf-8", newline="\n") as file:
            file.write("]\n" if written[t] else "[]\n")
    manifest = {"types": list(written), **layout.metadata}
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
    for array in arrays.values():
        array.flush()  # type: ignore[attr-defined]
    write_digests(folder)


def _new_array(path: Path, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    array = np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=shape)
    if hasattr(os, "posix_fallocate"):  # on a full disk an error now, not a signal when a page is written
        with path.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
    return array


def _array_name(node_type: NodeType, column: Column) -> str:
    return node_type if column == "vector" else f"{node_type}.{column}"


class Vectors:
    """Vectors of a network's nodes in a file or folder; nothing is read until it is used.

    ``Vectors.open`` opens what ``embed`` wrote, or any Parquet table with the columns id, type and vector.

    Example:
        >>> from heterformer import Vectors
        >>> vectors = Vectors.open("papers.parquet")
        >>> vectors.types
        ('paper', 'author', 'venue')
        >>> ids, matrix = vectors.ids("paper"), vectors.matrix("paper")  # n ids, (n, d)
    """

    def __init__(
        self,
        path: Path,
        metadata: Mapping[str, Any],
        types: tuple[NodeType, ...],
        tables: tuple[Path, ...],
        rows_at_once: int = ROWS,
    ) -> None:
        self.path, self.metadata, self.types, self._rows = path, metadata, types, rows_at_once
        self.tables = tables  # Parquet files; none if the folder holds arrays

    @classmethod
    def open(cls, path: Path | str, rows_at_once: int = ROWS) -> Vectors:
        """Open vectors. The types of a table are read, everything else on first use.

        Args:
            path: What ``embed`` wrote, or any Parquet table with the columns id, type and vector.
            rows_at_once: Rows that ``chunks`` reads at a time.

        Example:
            >>> vectors = Vectors.open("papers.parquet")
            >>> matrix = vectors.matrix("paper")  # (n, d), rows in the order of vectors.ids("paper")
        """
        path = readable(checked_path(path, "the place of the vectors", "the path of a file or folder"))
        return cls(path, *(opened_folder(path) if path.is_dir() else opened_table(path)), rows_at_once)

    def ids(self, node_type: NodeType) -> list[str]:
        """The ids, in the order of the vectors.

        Args:
            node_type: One of ``types``.
        """
        self._check(node_type)
        if not self.tables:
            return self._stored_ids(node_type)
        return [i for batch in self._parquet(node_type, ["id"]) for i in batch.column("id").to_pylist()]

    def matrix(self, node_type: NodeType) -> NDArray[Any]:
        """(n, d): memory-mapped if it comes from a folder.

        Args:
            node_type: One of ``types``.

        Example:
            >>> vectors.matrix("paper") @ vectors.matrix("author")[0]  # scores of all papers for an author
        """
        self._check(node_type)
        if not self.tables:
            return self._array(node_type)
        return np.concatenate([vectors for _, vectors in self.chunks(node_type)])

    def h0(self, node_type: NodeType) -> NDArray[Any] | None:
        """(n, 64): the short embeddings of a textless type's nodes, if they were written as well.

        Args:
            node_type: One of ``types``.
        """
        if not self.has_h0(node_type):
            return None
        if not self.tables:
            return self._array(f"{node_type}.h0")
        return np.concatenate([values for _, values in self.chunks(node_type, "h0")])

    def has_h0(self, node_type: NodeType) -> bool:
        """Whether short embeddings of the type's nodes were written as well.

        Args:
            node_type: One of ``types``.
        """
        self._check(node_type)
        if not self.tables:
            return (self.path / f"{node_type}.h0.npy").is_file()
        schema = table_schema(self.tables[0])
        if "h0" not in schema.names or not is_vector(schema.field("h0").type):
            return False
        first = next(self._parquet(node_type, ["h0"]), None)
        return first is not None and not first.column("h0").null_count  # a type with text has none

    def h0_width(self, node_type: NodeType) -> int:
        """How many numbers a short embedding has.

        Args:
            node_type: One of ``types``.
        """
        return int(next(self.chunks(node_type, "h0"))[1].shape[1])

    def mapped_matrix(self, node_type: NodeType, folder: Path, column: Column = "vector") -> NDArray[Any]:
        """(n, d), memory-mapped in any case: what a table holds is unpacked into ``folder`` for that.

        Args:
            node_type: One of ``types``.
            folder: Where to unpack; what is there already is used again.
            column: "vector", or "h0" for short embeddings.
        """
        if not self.tables:
            return self._array(_array_name(node_type, column))
        path = folder / f"{node_type}.{column}.unpacked.bin"
        if not path.exists():
            with replace_file(path) as partial, partial.open("wb") as file:
                for _, vectors in self.chunks(node_type, column):
                    file.write(vectors.tobytes())
        _, first = next(self.chunks(node_type, column))
        with reading(path, "remove it and start again"):
            return np.asarray(np.memmap(path, dtype=first.dtype, mode="r")).reshape(-1, first.shape[1])

    def signatures(self, node_type: NodeType) -> Hashes:
        """(n,): what ``since`` of ``heterformer embed`` goes by.

        Args:
            node_type: One of ``types``.
        """
        self._check(node_type)
        if not self.tables:
            return self._array(f"{node_type}.signatures")
        for table in self.tables:
            schema = table_schema(table)
            if "signature" not in schema.names or schema.field("signature").type != pa.uint64():
                raise InputError(f"{table}: has no column 'signature' of unsigned 64-bit numbers.")
        columns = [batch.column("signature") for batch in self._parquet(node_type, ["signature"])]
        if any(column.null_count for column in columns):
            raise InputError(f"{self.path}: a {node_type} node has no signature.")
        return np.concatenate([column.to_numpy() for column in columns])

    def chunks(self, node_type: NodeType, column: Column = "vector") -> Iterator[tuple[int, NDArray[Any]]]:
        """The vectors some thousand at a time, each time with the number of the first.

        Args:
            node_type: One of ``types``.
            column: "vector", or "h0" for short embeddings.

        Example:
            >>> for start, rows in vectors.chunks("paper"):  # (at most some thousand, d)
            ...     print(start, rows.shape)
        """
        self._check(node_type)
        start = 0
        if not self.tables:
            matrix = self._array(_array_name(node_type, column))
            for start in range(0, len(matrix), self._rows):
                yield start, np.array(matrix[start : start + self._rows])
            return
        width: int | None = None
        for batch in self._parquet(node_type, [column]):
            vectors = batch.column(column)
            flat = vectors.flatten().to_numpy(zero_copy_only=False)
            lengths = pc.list_value_length(vectors).fill_null(0).to_numpy(zero_copy_only=False)
            width = width or int(lengths[0])
            if vectors.null_count or (lengths != width).any() or not width:
                row = int(np.argmax(lengths != width))
                problem = f"the {column} of {node_type} number {start + row + 1} has {lengths[row]} numbers"
                raise InputError(f"{self.path}: {problem}, expected {width or 'some'} as others have.")
            if not np.isfinite(flat).all():
                row = int(np.argmin(np.isfinite(flat))) // width
                problem = (
                    f"the {column} of {node_type} number {start + row + 1} has a value that is not a number"
                )
                raise InputError(f"{self.path}: {problem}.")
            yield start, flat.reshape(len(vectors), -1)
            start += len(vectors)

    def _array(self, name: str) -> NDArray[Any]:
        return mapped_vectors(self.path, name)

    def _stored_ids(self, node_type: NodeType) -> list[str]:
        path = self.path / f"{node_type}.ids.json"
        ids = read_json(path, AGAIN)
        if not isinstance(ids, list) or not all(isinstance(node_id, str) for node_id in ids):
            raise damaged(path, "expected a list of ids", AGAIN)
        if ids and len(ids) != len(self._array(node_type)):
            vectors = len(self._array(node_type))
            raise damaged(path, f"it has {len(ids):,} ids, expected {vectors:,}, one for each vector", AGAIN)
        return ids

    def _parquet(self, node_type: NodeType, columns: list[str]) -> Iterator[pa.RecordBatch]:
        for table in self.tables:
            for batch in parquet_batches(table, ["type", *columns], self._rows, AGAIN):
                chosen = batch.filter(pc.equal(batch.column("type"), node_type))
                if len(chosen):
                    yield chosen

    def _check(self, node_type: NodeType) -> None:
        if node_type not in self.types:
            known = ", ".join(map(repr, self.types))
            raise InputError(f"{self.path}: has no vectors of type {node_type!r}, the types are {known}.")
