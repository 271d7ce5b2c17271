"""What a query names, found in the network: types, a node, neighbours, a filter.

It needs no vectors and no model, so that a mistake is reported before either is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from heterformer.errors import InputError, OptionError
from heterformer.network.lookup import Node, find_node, node_type_named, node_type_or_none
from heterformer.network.schema import NodeType, Schema
from heterformer.network.store import Network
from heterformer.options import check_argument
from heterformer.search.filters import check_columns, check_filter
from heterformer.search.options import SearchOptions
from heterformer.untrusted import check_text


@dataclass(frozen=True)
class ResolvedQuery:
    """A query's nodes by their rows."""

    types: tuple[NodeType, ...]  # to rank; none if the query did not say
    node: Node | None  # to search with, instead of a text
    neighbors: tuple[Node, ...]


def resolve_query(
    network: Network,
    text: str = "",
    *,
    neighbors: Sequence[str] = (),
    like: str = "",
    like_type: str = "",
    types: Sequence[NodeType] = (),
    where: str = "",
) -> ResolvedQuery:
    """Find what a query names; arguments are those of ``Searcher.search``."""
    check_argument(SearchOptions, "types", types)
    check_argument(SearchOptions, "neighbors", neighbors)
    check_query(text, neighbors, like, like_type)
    if where:
        check_filter(where)
    resolved = ResolvedQuery(
        tuple(node_type_named(network.schema, t, SearchOptions, "types") for t in types),
        _like(network, like, like_type) if like else None,
        tuple(_neighbor(network, value) for value in neighbors),
    )
    if where:
        for node_type in dict.fromkeys(resolved.types or default_types(network.schema, resolved.node)):
            check_columns(network, node_type, where)
    return resolved


def default_types(schema: Schema, node: Node | None) -> tuple[NodeType, ...]:
    """The types to rank by default: for a text, what it may be linked to; for a node, text-rich ones."""
    if node is None:
        return (schema.target_type,)
    if node.node_type in schema.text_rich:
        return (node.node_type,)
    adjacent = tuple(t for t in schema.neighbor_types_of(node.node_type) if t in schema.text_rich)
    return adjacent or schema.text_rich


def _like(network: Network, name: str, node_type: str) -> Node:
    types = network.schema.node_types
    if node_type:
        types = (node_type_named(network.schema, node_type, SearchOptions, "like_type"),)
    return find_node(network, name, types, SearchOptions, "like_type")


def _neighbor(network: Network, value: str) -> Node:
    name_of_type, equals, name = value.partition("=")
    if not equals:
        problem = f"has {value!r}, expected TYPE=NAME, such as 'author=Jane Doe'."
        raise OptionError(SearchOptions, "neighbors", problem)
    node_type = node_type_or_none(network.schema, name_of_type)
    if node_type is None:
        known = ", ".join(map(repr, network.schema.node_types))
        problem = f"has {value!r}, but {name_of_type!r} is no node type; expected one of {known}."
        raise OptionError(SearchOptions, "neighbors", problem)
    return find_node(network, name, [node_type])


def check_query(text: str, neighbors: Sequence[str], like: str, like_type: str) -> None:
    """Refuse what is no query, or two at once."""
    for words in (text, like, *neighbors):
        check_text(words, "the query")
    if like and (text.strip() or neighbors):
        problem = "searches with a node; leave out the query text and {neighbors}."
        raise OptionError(SearchOptions, "like", problem)
    if like_type and not like:
        raise OptionError(SearchOptions, "like_type", "is the type of the node {like}; give {like} as well.")
    if not like and not text.strip() and not neighbors:
        raise InputError("there is nothing to search for: give a query text, a node or neighbours.")
