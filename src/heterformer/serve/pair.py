"""Two nodes side by side: how alike their vectors are, and the neighbours that both have."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from heterformer.network.lookup import Node
from heterformer.network.store import Network
from heterformer.search.searcher import NamedNode, Searcher, neighbor_rows
from heterformer.search.store import typical_rows
from heterformer.serve.errors import NotFoundError

SHARED = 50  # neighbours of one type that both have, at most


def compare_pair(searcher: Searcher, one: Node, other: Node) -> dict[str, Any]:
    """Their inner product, its cosine, how many nodes of the other's type score lower, shared neighbours."""
    for node in (one, other):
        if node.node_type not in searcher.store.types:
            raise NotFoundError(f"{node.node_type} nodes have no vectors.")
    first, second = (searcher.like(node).vector.astype(np.float64) for node in (one, other))
    score = float(first @ second)
    lengths = float(np.linalg.norm(first) * np.linalg.norm(second))
    matrix = searcher.store.matrix(other.node_type)
    rows = typical_rows(len(matrix))
    rows = rows[rows != one.row] if one.node_type == other.node_type else rows
    others = matrix[rows].astype(np.float64) @ first  # (r,)
    return {
        "score": score,
        "cosine": score / lengths if lengths else 0.0,
        "above": float((others < score).mean()) if len(others) else None,
        "linked": other.row in neighbor_rows(searcher.network, one, other.node_type),
        "shared": shared_neighbors(searcher.network, one, other),
    }


def shared_neighbors(network: Network, one: Node, other: Node) -> list[dict[str, Any]]:
    """By type: how many neighbours both have, and the first of them."""
    groups = []
    for node_type in network.schema.neighbor_types_of(one.node_type):
        rows = np.intersect1d(
            neighbor_rows(network, one, node_type), neighbor_rows(network, other, node_type)
        )
        if len(rows):
            nodes = [asdict(NamedNode.from_node(network, Node(node_type, int(row)))) for row in rows[:SHARED]]
            groups.append({"type": node_type, "total": len(rows), "nodes": nodes})
    return groups
