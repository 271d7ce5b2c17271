"""Find a node by its id or display name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import NamedTuple
from unicodedata import combining, normalize

import polars as pl

from heterformer.errors import InputError, OptionError
from heterformer.network.schema import NodeType, Schema
from heterformer.network.store import Network
from heterformer.options import either
from heterformer.untrusted import check_text, short_repr

MAX_CANDIDATES = 2000  # names that are compared with an unknown one
COMPARED_LETTERS = 200  # of a name
WORD = re.compile(r"\w+")


class UnknownNodeError(InputError):
    """No node has that id or name."""


class Node(NamedTuple):
    """One node of a network."""

    node_type: NodeType
    row: int


def find_node(
    network: Network,
    name: str,
    node_types: Sequence[NodeType],
    options: object = None,
    field: str = "node_type",
    max_listed: int = 5,
) -> Node:
    """The one node of these types with this id, else with this display name, else regardless of case.

    ``field`` of ``options`` chooses the node type; an error lists at most ``max_listed`` nodes.
    """
    check_text(name, "the id or name")
    for matched_by, nodes in _matches(network, name, node_types):
        if len(nodes) == 1:
            if matched_by == "id":
                _check_no_name(network, name, nodes[0], node_types, options, field)
            return nodes[0]
        if nodes and matched_by == "id":
            listed = ", ".join(repr(node.node_type) for node in nodes)
            problem = f"is missing: the id {short_repr(name)} exists in the node types {listed}; choose one."
            raise OptionError(options, field, problem)
        if nodes:
            ids = [f"{t} {network.ids(t, [row])[0]!r}" for t, row in nodes[:max_listed]]
            listed = ", ".join(ids) + (", …" if len(nodes) > max_listed else "")
            raise InputError(
                f"{len(nodes):,} nodes have the name {short_repr(name)}; use the id of one: {listed}."
            )
    types, close = either(node_types), close_names(network, name, node_types)
    hint = f" (did you mean {either([*map(repr, close)])}?)" if close else ""
    raise UnknownNodeError(
        f"{network.path}: there is no {types} with the id or name {short_repr(name)}{hint}."
    )


def _check_no_name(
    network: Network, name: str, node: Node, node_types: Sequence[NodeType], options: object, field: str
) -> None:
    """Refuse an id that is also the name of nodes of another type: either may be meant."""
    for other in (t for t in node_types if t != node.node_type):
        for row in _rows(network.name_series(other) == name)[:1]:
            (own_id,) = network.ids(other, [row])
            both = f"the id of a {node.node_type} and the name of {other} {short_repr(own_id)}"
            raise OptionError(options, field, f"is missing: {short_repr(name)} is {both}; choose a type.")


def _matches(network: Network, name: str, node_types: Sequence[NodeType]) -> Iterator[tuple[str, list[Node]]]:
    """The nodes that match, by the strictest rule at first; a later rule is for when none matched."""
    yield "id", [Node(t, row) for t in node_types for row in _rows(network.id_series(t) == name)]
    names = {t: network.name_series(t) for t in node_types}
    yield "name", [Node(t, row) for t in node_types for row in _rows(names[t] == name)]
    lower = name.lower()
    yield "name", [Node(t, row) for t in node_types for row in _rows(names[t].str.to_lowercase() == lower)]


def _rows(matches: pl.Series) -> list[int]:
    return matches.arg_true().to_list()


def close_names(network: Network, name: str, node_types: Sequence[NodeType], most: int = 3) -> list[str]:
    """Names that are similar to an unknown one, in any order of words.

    Only names that share a word or half a word with it are compared: one wrong letter leaves the other half
    of its word intact, and a search for such pieces is fast even among millions of names.
    """
    words = [word for word in WORD.findall(name[:COMPARED_LETTERS]) if len(word) > 2]
    halves = [half for w in words for half in (w[: len(w) // 2], w[len(w) // 2 :]) if len(half) > 1]
    candidates: dict[str, str] = {}
    for node_type in node_types:
        names = network.name_series(node_type)
        for pieces in filter(None, (words, halves)):
            shared = names.filter(names.str.contains_any(pieces, ascii_case_insensitive=True))
            candidates |= {_compared(n): n for n in shared.head(MAX_CANDIDATES).to_list()}
    return [candidates[n][:COMPARED_LETTERS] for n in get_close_matches(_compared(name), candidates, n=most)]


def _compared(name: str) -> str:
    """The sorted words of a name in lower case, without accents."""
    letters = normalize("NFKD", name[:COMPARED_LETTERS].lower())
    return " ".join(sorted(WORD.findall("".join(c for c in letters if not combining(c)))))


def node_type_named(schema: Schema, name: str, options: object, field: str) -> NodeType:
    """A node type by its name, which is the value of ``field``; '-' may replace '_'."""
    node_type = node_type_or_none(schema, name)
    if node_type is None:
        known = ", ".join(map(repr, schema.node_types))
        raise OptionError(options, field, f"is {name!r}, expected one of {known}.")
    return node_type


def node_type_or_none(schema: Schema, name: str) -> NodeType | None:
    """A node type by its name; '-' may replace '_'."""
    known = {t.replace("_", "-"): t for t in schema.node_types} | {t: t for t in schema.node_types}
    return known.get(name)
