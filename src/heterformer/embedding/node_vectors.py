"""The vectors that tasks are done with: a run's own, or anybody's from a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray
from torch import Tensor

from heterformer.arrays import Ints
from heterformer.embedding.vectors import Vectors, noted_metadata
from heterformer.errors import InputError
from heterformer.network.schema import NodeType
from heterformer.network.store import Network
from heterformer.stored import read_parquet
from heterformer.untrusted import short_list

AT_ONCE = 512  # vectors that are looked at
FOREIGN = "expected what 'heterformer embed' wrote or a Parquet table with the columns id, vector and type"


@dataclass(frozen=True)
class NodeVectors:
    """Vectors of nodes of one type: ``matrix[i]`` is that of the node in row ``rows[i]`` of the network."""

    rows: Ints  # (n,), ascending
    matrix: NDArray[Any]  # (n, d)

    @classmethod
    def from_matrix(cls, matrix: NDArray[Any]) -> NodeVectors:
        return cls(np.arange(len(matrix)), matrix)

    def lookup(self, rows: Ints) -> NDArray[np.float32]:
        """(n, d): the vectors of nodes that have some."""
        chosen: NDArray[np.float32] = self.matrix[np.searchsorted(self.rows, rows)].astype(np.float32)
        return chosen

    def has(self, rows: Ints) -> NDArray[np.bool_]:
        """Which of the nodes have vectors."""
        return np.isin(rows, self.rows)


Vectorized = Mapping[NodeType, NodeVectors]


def looked_up(vectors: Vectorized, node_type: NodeType, rows: Ints, normalize: bool = False) -> Tensor:
    """(n, d): the vectors of some rows, scaled to length 1 if asked."""
    chosen = torch.from_numpy(vectors[node_type].lookup(rows))
    return torch.nn.functional.normalize(chosen, dim=1) if normalize else chosen


def given_vectors(path: Path, network: Network) -> dict[NodeType, NodeVectors]:
    """Vectors from a file, whoever made it. Nodes may be missing; ids that the network lacks may not be."""
    if not path.exists():
        raise InputError(f"{path}: does not exist, {FOREIGN}.")
    if path.is_dir():
        opened = Vectors.open(path)
        tables = {t: (pl.Series(opened.ids(t)), np.asarray(opened.matrix(t))) for t in opened.types}
    else:
        tables = _read_table(path, network)
    return {t: _checked(path, network, t, *table) for t, table in tables.items()}


def hidden_pairs(path: Path) -> dict[str, str] | None:
    """The digests of the pairs that were hidden when vectors were made, by relation; None if unknown.

    What 'heterformer embed' wrote before it noted this was made of the whole network.
    """
    metadata = noted_metadata(path)
    return None if metadata is None else dict(metadata.get("hidden_pairs", {}))


def _read_table(path: Path, network: Network) -> dict[NodeType, tuple[pl.Series, NDArray[Any]]]:
    """Ids and vectors by type. Without a column 'type' all are of the schema's ``query_type``."""
    try:
        frame = read_parquet(path)
    except InputError as error:
        reason = str(error).removeprefix(f"{path}: ").rstrip(".")
        raise InputError(f"{path}: holds no vectors, {FOREIGN} ({reason}).") from None
    for name in ("id", "vector"):
        if name not in frame.columns:
            raise InputError(f"{path}: has no column {name!r}, found {short_list(frame.columns)}.")
    if "type" not in frame.columns:
        frame = frame.with_columns(type=pl.lit(network.schema.query_type))
    if not len(frame):
        raise InputError(f"{path}: has no rows, expected a vector for each node.")
    frame = frame.with_columns(pl.col("id", "type").cast(pl.String)).with_row_index("row", offset=1)
    parts = frame.partition_by("type", as_dict=True)
    return {
        str(t): (part["id"], _as_array(path, part["vector"], part["row"]).to_numpy())
        for (t,), part in parts.items()
    }


def _as_array(path: Path, vector: pl.Series, rows: pl.Series) -> pl.Series:
    """Lists of numbers of one type's nodes, which must be equally long."""
    dtype = vector.dtype
    if not isinstance(dtype, pl.List | pl.Array) or not dtype.inner.is_numeric():
        raise InputError(f"{path}: column 'vector' holds {dtype}, expected lists of numbers.")
    if isinstance(dtype, pl.Array):
        return vector
    lengths = vector.list.len().fill_null(0).to_numpy()
    width = int(np.bincount(lengths).argmax())
    odd = lengths != width
    if odd.any() or not width:
        first = int(odd.argmax())
        expected = f"expected {width}, as most have" if width else "expected some"
        raise InputError(f"{path}: row {rows[first]}: {lengths[first]} numbers in 'vector', {expected}.")
    return vector.list.to_array(width)


def _checked(
    path: Path, network: Network, node_type: NodeType, ids: pl.Series, matrix: NDArray[Any]
) -> NodeVectors:
    """In the order of the network's rows. One sentence for whatever cannot be right."""
    if node_type not in network.schema.node_types:
        known = ", ".join(map(repr, network.schema.node_types))
        raise InputError(f"{path}: has vectors of type {node_type!r}, the node types are {known}.")
    wrong = ~_is_finite(matrix)
    if wrong.any():
        problem = f"the vector of {node_type} {ids[int(wrong.argmax())]!r} has a value that is not a number"
        raise InputError(f"{path}: {problem} ({int(wrong.sum()):,} of {len(ids):,} have).")
    if (again := ids.is_duplicated()).any():
        raise InputError(f"{path}: {node_type} {ids.filter(again)[0]!r} has two vectors, expected one.")
    try:
        rows = network.rows(node_type, ids.to_list())
    except InputError as error:
        raise InputError(f"{path}: has a vector for an unknown node ({error}).") from None
    if (np.diff(rows) > 0).all():  # as 'heterformer embed' writes them: no copy of what may be gigabytes
        return NodeVectors(rows, matrix)
    order = np.argsort(rows)
    return NodeVectors(rows[order], matrix[order])


def _is_finite(matrix: NDArray[Any]) -> NDArray[np.bool_]:
    """(n,): which vectors have only finite numbers in single precision, some at a time."""
    is_finite = np.empty(len(matrix), dtype=bool)
    for start in range(0, len(matrix), AT_ONCE):
        block = matrix[start : start + AT_ONCE].astype(np.float32)
        is_finite[start : start + AT_ONCE] = np.isfinite(block).all(1)
    return is_finite
