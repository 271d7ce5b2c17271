"""Nodes as a client sees them: columns, neighbours page by page, and names that begin with some letters."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

import numpy as np
import polars as pl

from heterformer.errors import InputError
from heterformer.explanation.core import relation_of
from heterformer.network.columns import node_column, own_name
from heterformer.network.lookup import Node
from heterformer.network.schema import EdgeType, NodeType, Schema
from heterformer.network.store import Network
from heterformer.search.searcher import NamedNode
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


@dataclass(frozen=True)
class Page:
    """Which neighbours to show: of one type, over one relation, in one direction, or (empty) of all."""

    neighbor_type: str = ""
    relation: str = ""
    direction: str = ""
    offset: int = 0
    limit: int = 50

    def shows(self, schema: Schema, edge_type: EdgeType) -> bool:
        """Whether neighbours over this edge type are among them."""
        values = (edge_type.neighbor, *relation_of(schema, edge_type))
        filters = (self.neighbor_type, self.relation, self.direction)
        return all(want in ("", value) for want, value in zip(filters, values, strict=True))


def node_page(network: Network, node: Node, page: Page) -> dict[str, Any]:
    """A node's columns, how many neighbours it has over each relation, and a page of them."""
    values: dict[str, Any] = {"text": None, "label": [], "time": None}
    attributes = {}
    for stored in network.columns(node.node_type):
        value = network.column(node.node_type, stored)[node.row].as_py()
        if node_column(stored).prefix:
            attributes[own_name(stored)] = value
        elif stored in values:
            values[stored] = value
    named = asdict(NamedNode.from_node(network, node)) | values
    groups = [_group(network.schema, edge_type, n) for edge_type, n in _edge_counts(network, node).items()]
    return named | {
        "attributes": attributes,
        "relations": groups,
        "neighbors": neighbors_page(network, node, page),
    }


def _group(schema: Schema, edge_type: EdgeType, total: int) -> dict[str, Any]:
    relation, direction = relation_of(schema, edge_type)
    return {
        "relation": relation,
        "direction": direction,
        "neighbor_type": edge_type.neighbor,
        "total": total,
    }


def _edge_counts(network: Network, node: Node) -> dict[EdgeType, int]:
    counts: dict[EdgeType, int] = {}
    for node_type in network.schema.neighbor_types_of(node.node_type):
        entries = _entries(network, node, node_type)
        numbers = np.bincount(
            network.adjacency(node.node_type, node_type).edge_type[entries],
            minlength=len(network.schema.edge_types),
        )
        for edge_type in network.schema.edge_types_of(node.node_type, node_type):
            counts[edge_type] = int(numbers[network.schema.edge_types.index(edge_type)])
    return counts


def neighbors_page(network: Network, node: Node, page: Page) -> dict[str, Any]:
    """The number of neighbours that a page shows some of, and those; one is there once per edge."""
    schema = network.schema
    edge_types = [e for e in schema.edge_types_of(node.node_type) if page.shows(schema, e)]
    if not edge_types and any((page.neighbor_type, page.relation, page.direction)):
        groups = (_group(schema, e, 0) for e in schema.edge_types_of(node.node_type))
        known = ", ".join(f"{g['relation']} {g['direction']} {g['neighbor_type']}" for g in groups)
        raise NotFoundError(f"{node.node_type} nodes have no such neighbours, only {known}.")
    numbers = [schema.edge_types.index(e) for e in edge_types]
    total = 0
    items: list[dict[str, Any]] = []
    for node_type in dict.fromkeys(e.neighbor for e in edge_types):
        adjacency, entries = network.adjacency(node.node_type, node_type), _entries(network, node, node_type)
        places = entries.start + np.flatnonzero(np.isin(adjacency.edge_type[entries], numbers))
        first = max(0, page.offset - total)
        total += len(places)
        for place in places[first : first + page.limit - len(items)].tolist():
            edge_type = schema.edge_types[int(adjacency.edge_type[place])]
            relation, direction = relation_of(schema, edge_type)
            named = short_named(network, Node(node_type, int(adjacency.neighbor[place])))
            items.append(named | {"relation": relation, "direction": direction})
    return {"total": total, "offset": page.offset, "limit": page.limit, "items": items}


def _entries(network: Network, node: Node, node_type: NodeType) -> slice:
    indptr = network.adjacency(node.node_type, node_type).indptr
    return slice(int(indptr[node.row]), int(indptr[node.row + 1]))


def short_named(network: Network, node: Node) -> dict[str, Any]:
    """A node as it stands in a list."""
    named = asdict(NamedNode.from_node(network, node))
    return named | {"name": named["name"][:LONGEST_NAME]}


def nodes_named(
    network: Network, letters: str, types: tuple[NodeType, ...], limit: int
) -> list[dict[str, Any]]:
    """Nodes whose names or ids begin with some letters, then those that contain them, whatever the case."""
    prefix = letters.strip().lower()
    beginning: list[Node] = []
    containing: list[Node] = []
    for node_type in types:
        names = network.name_series(node_type).str.to_lowercase()
        ids = network.id_series(node_type).str.to_lowercase()
        begins = names.str.starts_with(prefix) | ids.str.starts_with(prefix)
        contains = names.str.contains(prefix, literal=True) & ~begins
        beginning += _first(node_type, begins, limit)
        containing += _first(node_type, contains, limit)
    chosen = islice((*beginning, *containing), limit)
    return [short_named(network, node) for node in chosen]


def _first(node_type: NodeType, matches: pl.Series, limit: int) -> list[Node]:
    rows = np.flatnonzero(matches.fill_null(False).to_numpy())[:limit]
    return [Node(node_type, int(row)) for row in rows]
