"""Find a node by its id or display name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import NamedTuple
from unicodedata import combining, normalize

import polars as pl

from heterformer.errors import InputError, OptionError
from heterformer.network.schema import NodeType
from heterformer.network.store import Network
from heterformer.untrusted import shown

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
    for matched_by, nodes in _matches(network, name, node_types):
        if len(nodes) == 1:
            return nodes[0]
        if nodes and matched_by == "id":
            listed = ", ".join(repr(node.node_type) for node in nodes)
            problem = f"is missing: the id {shown(name)} exists in the node types {listed}; choose one."
            raise OptionError(options, field, problem)
        if nodes:
            ids = [f"{t} {network.ids(t, [row])[0]!r}" for t, row in nodes[:max_listed]]
            listed = ", ".join(ids) + (", …" if len(nodes) > max_listed else "")
            raise InputError(
                f"{len(nodes):,} nodes have the name {shown(name)}; use the id of one: {listed}."
            )
    types = " or ".join(node_types)
    close = " or ".join(map(repr, close_names(network, name, node_types)))
    hint = f" (did you mean {close}?)" if close else ""
    raise UnknownNodeError(f"{network.path}: there is no {types} with the id or name {shown(name)}{hint}.")


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
