"""To and from PyTorch Geometric's ``HeteroData``."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from heterformer.errors import InputError
from heterformer.network.build.frames import build_from_frames
from heterformer.network.columns import node_column
from heterformer.network.interchange.rows import edge_columns, unused_name
from heterformer.network.schema import EdgeColumn, NodeType
from heterformer.network.store import Network
from heterformer.untrusted import REVERSED, short_repr

EDGE_COLUMNS: dict[EdgeColumn, str] = {"weight": "edge_weight", "time": "edge_time"}  # in a HeteroData


def from_hetero_data(
    data: Any,
    texts: Mapping[NodeType, Sequence[str]],
    *,
    ids: Mapping[NodeType, Sequence[Any]] | None = None,
    labels: Mapping[NodeType, Sequence[Any]] | None = None,
    columns: Mapping[str, Mapping[NodeType, Sequence[Any]]] | None = None,
    attributes: Mapping[NodeType, Mapping[str, Sequence[Any]]] | None = None,
    attribute_kinds: Mapping[NodeType, Mapping[str, str]] | None = None,
    weight: str | None = None,
    time: str | None = None,
    text_from: Mapping[NodeType, str] | None = None,
    out: Path | str | None = None,
    **spec: Any,
) -> Network:
    """See ``Network.from_hetero_data``.

    The reverse of a relation, by its name (``rev_``) or, under the same name, by its edges, is left out: both
    directions are traversed anyway.
    """
    if not (hasattr(data, "node_types") and hasattr(data, "edge_types")):
        raise InputError(f"the data are {short_repr(data)}, expected a HeteroData of PyTorch Geometric.")
    ids = ids or {}
    by_key = {"text": texts, "label": labels or {}, **(columns or {})}
    for values_by_type in (*by_key.values(), ids):
        for node_type, sequence in values_by_type.items():
            _check_length(data, node_type, sequence)
    for node_type, sequences in (attributes or {}).items():
        for sequence in sequences.values():
            _check_length(data, node_type, sequence)
    nodes: dict[str, Any] = {}
    frames: dict[str, pl.DataFrame] = {}
    names: dict[NodeType, list[str]] = {}
    for node_type in data.node_types:
        node_ids = ids[node_type] if node_type in ids else range(_count(data, node_type, texts))
        names[node_type] = [str(i.item() if hasattr(i, "item") else i) for i in node_ids]
        values = {key: list(by_key[key][node_type]) for key in by_key if node_type in by_key[key]}
        frames[node_type] = pl.DataFrame({"id": names[node_type], **values})
        nodes[node_type] = {key: key for key in ("id", *values)}
        if own := (attributes or {}).get(node_type):
            taken = set(frames[node_type].columns)
            features = {name: unused_name(name, taken) for name in own}
            series = [pl.Series(features[name], list(sequence)) for name, sequence in own.items()]
            frames[node_type] = frames[node_type].with_columns(series)
            kinds = (attribute_kinds or {}).get(node_type)
            declared = {features[name]: kind for name, kind in kinds.items()} if kinds else None
            nodes[node_type]["attributes"] = declared or list(features.values())
        if node_type in (text_from or {}):
            nodes[node_type]["text_from"] = (text_from or {})[node_type]
    relations, edges = _relations(data, names, {"weight": weight, "time": time})
    return build_from_frames(
        {"missing": [], **spec, "nodes": nodes, "relations": relations}, frames, edges, out
    )


def to_hetero_data(network: Network, vectors: Any = None) -> Any:
    """See ``Network.to_hetero_data``."""
    torch, hetero_data = import_libraries()
    data = hetero_data()
    for node_type in network.schema.node_types:
        data[node_type].num_nodes = network.schema.counts[node_type]
        for column in network.columns(node_type):
            if not node_column(column).prefix:
                data[node_type][column] = network.column(node_type, column).to_pylist()
        if kinds := network.attribute_kinds.get(node_type):
            data[node_type].attributes = {n: network.attribute(node_type, n).to_list() for n in kinds}
    for relation in network.schema.relations:
        edges = np.stack(network.edges(relation.name)).astype(np.int64)
        store = data[relation.source, relation.name, relation.target]
        store.edge_index = torch.from_numpy(edges)
        for column, values in edge_columns(network, relation).items():
            store[EDGE_COLUMNS[column]] = torch.from_numpy(np.array(values))
    for node_type, matrix in _matrices(network, vectors).items():
        data[node_type].x = torch.from_numpy(np.array(matrix, dtype=np.float32))
    return data


def _matrices(network: Network, vectors: Any) -> dict[NodeType, Any]:
    """The features of each type: from a mapping, or from vectors in a file."""
    if vectors is None:
        return {}
    if not isinstance(vectors, Mapping):
        _check_ids(network, vectors)
        vectors = {node_type: vectors.matrix(node_type) for node_type in vectors.types}
    counts = network.schema.counts
    matrices = {name: matrix for name, matrix in vectors.items() if name in counts}  # without author.h0
    for node_type, matrix in matrices.items():
        if np.ndim(matrix) != 2 or len(matrix) != counts[node_type]:
            expected = f"expected ({counts[node_type]}, d), one row for each node"
            raise InputError(f"vectors of {node_type!r} have the shape {np.shape(matrix)}, {expected}.")
    return matrices


def _check_ids(network: Network, vectors: Any) -> None:
    for node_type in vectors.types:
        known = node_type in network.schema.node_types
        if not known or list(vectors.ids(node_type)) != network.ids(node_type):
            problem = f"its {node_type} nodes are not those of {network.path} in the same order"
            raise InputError(f"{vectors.path}: {problem}; embed this network.")


def _relations(
    data: Any, names: Mapping[NodeType, list[str]], columns: Mapping[EdgeColumn, str | None]
) -> tuple[dict[str, Any], dict[str, pl.DataFrame]]:
    kept: list[Any] = []
    for edge_type in data.edge_types:
        source, name, target = edge_type
        reverse_name = name.startswith(REVERSED) and name.removeprefix(REVERSED)
        if reverse_name and (target, reverse_name, source) in data.edge_types:
            continue
        twin = (target, name, source)
        if not (twin in kept and twin != edge_type and _transposed(data, twin, edge_type)):
            kept.append(edge_type)
    name_counts = Counter(relation for _, relation, _ in kept)
    relations, frames = {}, {}
    for source, relation, target in kept:
        name = relation if name_counts[relation] == 1 else f"{source}-{relation}-{target}"
        index = _edge_index(data, source, relation, target, names)
        store = data[source, relation, target]
        values: dict[str, Any] = {c: store[n] for c, n in columns.items() if n is not None and n in store}
        relations[name] = {"from": source, "to": target, "columns": ["source", "target"]}
        relations[name] |= {column: column for column in values}
        frames[name] = pl.DataFrame(
            {
                "source": pl.Series(names[source], dtype=pl.String).gather(index[0]),
                "target": pl.Series(names[target], dtype=pl.String).gather(index[1]),
                **{column: _edge_values(tensor, column, index) for column, tensor in values.items()},
            }
        )
    return relations, frames


def _edge_values(tensor: Any, name: str, index: Any) -> Any:
    """One value per edge."""
    if tensor.ndim != 1 or len(tensor) != index.shape[1]:
        problem = f"the HeteroData's {name!r} has the shape {tuple(tensor.shape)}"
        raise InputError(f"{problem}, expected one value for each of {index.shape[1]} edges.")
    return tensor.cpu().numpy()


def _transposed(data: Any, one: Any, other: Any) -> bool:
    """Whether one relation is the reverse of the other: many data sets give both directions one name."""
    pairs = [data[edge_type].get("edge_index") for edge_type in (one, other)]
    if any(index is None or index.ndim != 2 or len(index) != 2 for index in pairs):
        return False
    forward, backward = (np.unique(index.cpu().numpy(), axis=1) for index in (pairs[0], pairs[1].flip(0)))
    return np.array_equal(forward, backward)


def _count(data: Any, node_type: NodeType, texts: Mapping[NodeType, Sequence[str]]) -> int:
    """The number of nodes of a type; the number of its texts if ``num_nodes`` is not set."""
    count = _num_nodes(data, node_type)
    if count is None and node_type not in texts:
        raise InputError(f"the HeteroData has no number of {node_type!r} nodes; set num_nodes.")
    return len(texts[node_type]) if count is None else count


def _num_nodes(data: Any, node_type: NodeType) -> int | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch Geometric warns if it cannot infer the number
        count = data[node_type].num_nodes
    return None if count is None else int(count)


def _edge_index(data: Any, source: str, relation: str, target: str, names: Mapping[str, list[str]]) -> Any:
    place = f"the HeteroData's edge type {(source, relation, target)}"
    for end in (source, target):
        if end not in names:
            raise InputError(f"{place}: unknown node type {end!r}.")
    if "edge_index" not in data[source, relation, target]:
        raise InputError(f"{place}: no 'edge_index'.")
    index = data[source, relation, target].edge_index.cpu().numpy()
    if index.ndim != 2 or len(index) != 2:
        raise InputError(f"{place}: 'edge_index' has the shape {index.shape}, expected (2, edges).")
    for row, end in zip(index, (source, target), strict=True):
        if len(row) and not (row.min() >= 0 and row.max() < len(names[end])):
            wrong = row.max() if row.max() >= len(names[end]) else row.min()
            raise InputError(f"{place}: found {end} node {wrong}, expected 0 to {len(names[end]) - 1}.")
    return index


def _check_length(data: Any, node_type: NodeType, values: Sequence[Any]) -> None:
    if node_type not in data.node_types:
        known = ", ".join(map(repr, data.node_types))
        raise InputError(f"the HeteroData has no node type {node_type!r}, its types are {known}.")
    count = _num_nodes(data, node_type)
    if count is not None and len(values) != count:
        problem = f"found {len(values)} values for the node type {node_type!r}"
        raise InputError(f"{problem}, expected one for each of its {count} nodes.")


def import_libraries() -> tuple[Any, Any]:
    """PyTorch and ``HeteroData``, imported on first use: that takes seconds."""
    try:
        import torch
        from torch_geometric.data import HeteroData
    except ImportError:
        raise InputError("HeteroData needs PyTorch Geometric: pip install 'heterformer[pyg]'.") from None
    return torch, HeteroData
