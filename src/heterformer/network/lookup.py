"""From what a person calls a node to the node."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import NamedTuple
from unicodedata import combining, normalize

import polars as pl

from heterformer.errors import InputError
from heterformer.network.schema import NodeType
from heterformer.network.store import Network

CANDIDATES = 2000  # names that are compared with one that nobody has
COMPARED = 200  # letters of a name that are compared
LISTED = 5
WORD = re.compile(r"\w+")


class Node(NamedTuple):
    """One node of a network."""

    node_type: NodeType
    row: int


def find_node(network: Network, name: str, node_types: Sequence[NodeType], flag: str = "--like-type") -> Node:
    """The one node of the given types with this id, else with this display name, else in other capitals.

    ``flag`` is the option that would say its type.
    """
    for what, found in _stages(network, name, node_types):
        if len(found) == 1:
            return found[0]
        if found and what == "id":
            listed = ", ".join(repr(node.node_type) for node in found)
            raise InputError(f"the id {name!r} occurs in the node types {listed}; say which with {flag}.")
        if found:
            ids = [f"{t} {network.ids(t, [row])[0]!r}" for t, row in found[:LISTED]]
            listed = ", ".join(ids) + (", …" if len(found) > LISTED else "")
            raise InputError(
                f"{len(found):,} nodes are called {name!r}; give the id of one of them: {listed}."
            )
    types = " or ".join(node_types)
    close = " or ".join(map(repr, close_names(network, name, node_types)))
    hint = f" (did you mean {close}?)" if close else ""
    raise InputError(f"{network.path}: there is no {types} with the id or name {name!r}{hint}.")


def _stages(network: Network, name: str, node_types: Sequence[NodeType]) -> Iterator[tuple[str, list[Node]]]:
    """What matches, the strictest way of matching first; each is tried only if those before found nothing."""
    yield "id", [Node(t, row) for t in node_types for row in _rows(network.id_series(t) == name)]
    names = {t: network.name_series(t) for t in node_types}
    yield "name", [Node(t, row) for t in node_types for row in _rows(names[t] == name)]
    lower = name.lower()
    yield "name", [Node(t, row) for t in node_types for row in _rows(names[t].str.to_lowercase() == lower)]


def _rows(matches: pl.Series) -> list[int]:
    return matches.arg_true().to_list()


def close_names(network: Network, name: str, node_types: Sequence[NodeType], most: int = 3) -> list[str]:
    """Names that resemble one that nobody has, whatever the order of their words.

    Only names that share a word with it, or half a word, are compared: one wrong letter leaves the other
    half of its word as it is, and looking for pieces costs little even among millions of names.
    """
    words = [word for word in WORD.findall(name) if len(word) > 2]
    halves = [half for w in words for half in (w[: len(w) // 2], w[len(w) // 2 :]) if len(half) > 1]
    candidates: dict[str, str] = {}
    for node_type in node_types:
        names = network.name_series(node_type)
        for pieces in filter(None, (words, halves)):
            shared = names.filter(names.str.contains_any(pieces, ascii_case_insensitive=True))
            candidates |= {_compared(n): n for n in shared.head(CANDIDATES).to_list()}
    return [candidates[n][:COMPARED] for n in get_close_matches(_compared(name), candidates, n=most)]


def _compared(name: str) -> str:
    """The words of a name in order, without capitals and accents."""
    letters = normalize("NFKD", name[:COMPARED].lower())
    return " ".join(sorted(WORD.findall("".join(c for c in letters if not combining(c)))))
