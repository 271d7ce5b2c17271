"""Nodes as a client sees them: columns, neighbours page by page, and names that begin with some letters."""

from __future__ import annotations

from dataclasses import asdict
from itertools import islice
from typing import Any

import numpy as np
import polars as pl

from heterformer.errors import InputError
from heterformer.explanation.core import relation_of
from heterformer.network.columns import node_column, own_name
from heterformer.network.lookup import Node
from heterformer.network.schema import NodeType
from heterformer.network.store import Network
from heterformer.search.searcher import Named
from heterformer.serve.errors import NotFoundError

LONGEST_NAME = 300  # letters of a name in a list: a node's text may be a whole abstract


def find_by_id(network: Network, node_type: NodeType, node_id: str) -> Node:
    """A node by its type and id."""
    if node_type not in network.schema.counts:
        known = ", ".join(network.schema.node_types)
        raise NotFoundError(f"there is no node type {node_type!r}, the types are {known}.")
    try:
        (row,) = network.rows(node_type, [node_id])
    except InputError:
        raise NotFoundError(f"there is no {node_type} with the id {node_id!r}.") from None
    return Node(node_type, int(row))


def node_page(network: Network, node: Node, neighbor_type: str, offset: int, limit: int) -> dict[str, Any]:
    """A node's columns, and ``limit`` of its neighbours (of one type, or of all) from ``offset`` on."""
    named = Named.of(network, node)
    values: dict[str, Any] = {"text": None, "label": [], "time": None}
    attributes = {}
    for stored in network.columns(node.node_type):
        value = network.column(node.node_type, stored)[node.row].as_py()
        if node_column(stored).prefix:
            attributes[own_name(stored)] = value
        elif stored in values:
            values[stored] = value
    types = [t for t in network.schema.neighbor_types_of(node.node_type) if neighbor_type in ("", t)]
    if neighbor_type and not types:
        known = ", ".join(network.schema.neighbor_types_of(node.node_type))
        raise NotFoundError(f"{node.node_type} nodes have no {neighbor_type!r} neighbours, only {known}.")
    total, neighbors = _neighbors(network, node, types, offset, limit)
    edges = {"total": total, "offset": offset, "limit": limit, "items": neighbors}
    return asdict(named) | values | {"attributes": attributes, "neighbors": edges}


def _neighbors(
    network: Network, node: Node, types: list[NodeType], offset: int, limit: int
) -> tuple[int, list[dict[str, Any]]]:
    """The number of edges and those of one page, which is all that is read."""
    total = 0
    found: list[dict[str, Any]] = []
    for node_type in types:
        adjacency = network.adjacency(node.node_type, node_type)
        start, stop = (int(adjacency.indptr[node.row + i]) for i in (0, 1))
        first = start + max(0, offset - total)
        total += stop - start
        for entry in range(first, min(stop, first + limit - len(found))):
            edge_type = network.schema.edge_types[int(adjacency.edge_type[entry])]
            relation, direction = relation_of(network.schema, edge_type)
            named = asdict(Named.of(network, Node(node_type, int(adjacency.neighbor[entry]))))
            named["name"] = named["name"][:LONGEST_NAME]
            found.append(named | {"relation": relation, "direction": direction})
    return total, found


def nodes_named(
    network: Network, letters: str, types: tuple[NodeType, ...], limit: int
) -> list[dict[str, Any]]:
    """Nodes whose names or ids begin with some letters, then those that contain them, whatever the case."""
    wanted = letters.strip().lower()
    beginning: list[Node] = []
    containing: list[Node] = []
    for node_type in types:
        names = network.name_series(node_type).str.to_lowercase()
        ids = network.id_series(node_type).str.to_lowercase()
        begins = names.str.starts_with(wanted) | ids.str.starts_with(wanted)
        contains = names.str.contains(wanted, literal=True) & ~begins
        beginning += _first(node_type, begins, limit)
        containing += _first(node_type, contains, limit)
    chosen = islice((*beginning, *containing), limit)
    named = (asdict(Named.of(network, node)) for node in chosen)
    return [values | {"name": values["name"][:LONGEST_NAME]} for values in named]


def _first(node_type: NodeType, matches: pl.Series, limit: int) -> list[Node]:
    rows = np.flatnonzero(matches.fill_null(False).to_numpy())[:limit]
    return [Node(node_type, int(row)) for row in rows]
