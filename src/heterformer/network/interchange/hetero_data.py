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
from heterformer.network.schema import NodeType
from heterformer.network.store import Network
from heterformer.untrusted import REVERSED


def from_hetero_data(
    data: Any,
    texts: Mapping[NodeType, Sequence[str]],
    *,
    ids: Mapping[NodeType, Sequence[Any]] | None = None,
    labels: Mapping[NodeType, Sequence[Any]] | None = None,
    columns: Mapping[str, Mapping[NodeType, Sequence[Any]]] | None = None,
    out: Path | str | None = None,
    **spec: Any,
) -> Network:
    """See ``Network.from_hetero_data``.

    The reverse of a relation, by its name (``rev_``) or, under the same name, by its edges, is left out: both
    directions are traversed anyway.
    """
    ids = ids or {}
    by_key = {"text": texts, "label": labels or {}, **(columns or {})}
    for values_by_type in (*by_key.values(), ids):
        for node_type, sequence in values_by_type.items():
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
    relations, edges = _relations(data, names)
    return build_from_frames(
        {"missing": [], **spec, "nodes": nodes, "relations": relations}, frames, edges, out
    )


def to_hetero_data(network: Network) -> Any:
    """See ``Network.to_hetero_data``."""
    torch, hetero_data = import_libraries()
    data = hetero_data()
    for node_type in network.schema.node_types:
        data[node_type].num_nodes = network.schema.counts[node_type]
        for column in network.columns(node_type):
            if not node_column(column).prefix:
                data[node_type][column] = network.column(node_type, column).to_pylist()
    for relation in network.schema.relations:
        edges = np.stack(network.edges(relation.name)).astype(np.int64)
        data[relation.source, relation.name, relation.target].edge_index = torch.from_numpy(edges)
    return data


def _relations(
    data: Any, names: Mapping[NodeType, list[str]]
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
        relations[name] = {"from": source, "to": target, "columns": ["source", "target"]}
        frames[name] = pl.DataFrame(
            {
                "source": pl.Series(names[source], dtype=pl.String).gather(index[0]),
                "target": pl.Series(names[target], dtype=pl.String).gather(index[1]),
            }
        )
    return relations, frames


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
