"""Vectors on disk, opened: what is checked before anything of them is used."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from numpy.typing import NDArray

from heterformer.digests import check_sizes
from heterformer.errors import InputError
from heterformer.files import damaged, reading
from heterformer.network.schema import NodeType
from heterformer.stored import map_array, open_parquet, parquet_batches, read_json
from heterformer.untrusted import check_file_name, short_list

KEY = b"heterformer"  # of our entry in a Parquet file's metadata
SEALED = b"heterformer.sealed"  # of the entry that says that a table has digests
MANIFEST = "vectors.json"
AGAIN = "embed the network again"
EXPECTED = "expected what 'heterformer embed' wrote or a Parquet table with the columns id, type and vector"


def opened_folder(path: Path) -> tuple[Mapping[str, Any], tuple[NodeType, ...], tuple[Path, ...]]:
    """Metadata, types and tables of a folder that was written here."""
    if not (path / MANIFEST).is_file():
        raise InputError(f"{path}: holds no vectors, {EXPECTED}.")
    values = read_json(path / MANIFEST, AGAIN)
    with reading(path / MANIFEST, AGAIN):
        types = tuple(check_file_name(name, path / MANIFEST) for name in values["types"])
        tables = tuple(path / check_file_name(n, path / MANIFEST) for n in values.get("parts", ()))
    for table in tables:
        table_schema(table)
    if not tables:
        _check_arrays(path, types)
    return values, types, tables


def opened_table(path: Path) -> tuple[Mapping[str, Any], tuple[NodeType, ...], tuple[Path, ...]]:
    """Metadata and types of one table, which may be another tool's."""
    schema = table_schema(path)
    with reading(path, AGAIN):
        metadata = dict(json.loads((schema.metadata or {}).get(KEY, b"{}")))
    types: dict[str, None] = {}
    for batch in parquet_batches(path, ["type"], remedy=AGAIN):
        types |= dict.fromkeys(batch.column("type").unique().to_pylist())
    types.pop(None, None)  # type: ignore[call-overload]
    if not types:
        raise InputError(f"{path}: has no rows with a type, expected a vector for each node.")
    return metadata, tuple(check_file_name(name, path) for name in types), (path,)


def table_schema(path: Path, typed: bool = True) -> pa.Schema:
    """The columns of a table of vectors, the type of each among them unless that may be left out."""
    try:
        with open_parquet(path) as file:
            schema = file.schema_arrow
    except InputError as error:
        reason = str(error).removeprefix(f"{path}: ").rstrip(".")
        raise InputError(f"{path}: holds no vectors, {EXPECTED} ({reason}).") from None
    for name in ("id", "type", "vector") if typed else ("id", "vector"):
        if name not in schema.names:
            raise InputError(f"{path}: has no column {name!r}, found {short_list(schema.names)}.")
    kind = schema.field("vector").type
    if not is_vector(kind):
        raise InputError(f"{path}: column 'vector' holds {kind}, expected lists of numbers.")
    return schema


def _check_arrays(folder: Path, types: Sequence[NodeType]) -> None:
    """All files there, and as many rows in each array; no more than their headers is read."""
    check_sizes(folder, AGAIN)
    for node_type in types:
        ids = folder / f"{node_type}.ids.json"
        if not ids.is_file():
            raise InputError(f"{ids}: is missing; {AGAIN}.")
        if ids.stat().st_size <= len("[]\n"):
            continue  # of a type without nodes there is no array
        rows: dict[Path, int] = {}
        for name in (node_type, f"{node_type}.signatures", f"{node_type}.h0"):
            path = folder / f"{name}.npy"
            if path.is_file():
                rows[path] = len(mapped_vectors(folder, name))
            elif not name.endswith(".h0"):
                raise InputError(f"{path}: is missing; {AGAIN}.")
        expected = rows[folder / f"{node_type}.npy"]
        for path, count in rows.items():
            if count != expected:
                problem = f"has {count:,} rows, expected {expected:,}, one for each vector"
                raise InputError(f"{path}: {problem}; {AGAIN}.")


def mapped_vectors(folder: Path, name: str) -> NDArray[Any]:
    """An array of vectors' folder; signatures are one number for each node, all else vectors."""
    path = folder / f"{name}.npy"
    if name.endswith(".signatures"):
        return map_array(path, AGAIN, kind="u8")
    array = map_array(path, AGAIN, ndim=2)
    if array.dtype.kind != "f":
        raise damaged(path, f"it holds {array.dtype}, expected vectors", AGAIN)
    return array


def is_sealed(path: Path) -> bool:
    """Whether a table was written with digests."""
    with open_parquet(path, AGAIN) as file:
        return SEALED in (file.schema_arrow.metadata or {})


def is_vector(kind: pa.DataType) -> bool:
    """Whether a column holds lists of numbers."""
    lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    numbers = (pa.types.is_floating, pa.types.is_integer)
    return any(is_(kind) for is_ in lists) and any(is_(kind.value_type) for is_ in numbers)
