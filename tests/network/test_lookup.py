"""From names to nodes."""

from __future__ import annotations

from functools import cache

import pytest

from heterformer.errors import InputError
from heterformer.network.lookup import Node, find_node
from heterformer.network.store import Network

TYPES = ("paper", "author", "venue")


@cache
def network() -> Network:
    papers = {
        "id": ["p1", "p2", "Jane Doe", "p4", "x"],
        "title": ["Byzantine Generals", "", "A life", "byzantine generals", "Twice"],
    }
    authors = {
        "id": ["a1", "a2", "a3", "a4", "a5", "a6", "a7", "x", "a9"],
        "name": [
            "Jane Doe",
            "Émile Zola",
            "John Smith",
            "John Smith",
            "JOHN SMITH",
            None,
            "",
            "Twice",
            "Aristotle",
        ],
    }
    same = {"from": "paper", "to": "paper", "columns": ["a", "b"]}
    return Network.from_frames(
        {
            "nodes": {"paper": {"text": "title"}, "author": {"name": "name"}, "venue": None},
            "relations": {
                "cites": same,
                "written_by": {**same, "to": "author"},
                "published_in": {**same, "to": "venue"},
            },
            "predict": "cites",
        },
        {"paper": papers, "author": authors},
        {
            "cites": {"a": ["p1", "p2"], "b": ["p2", "p4"]},
            "written_by": {"a": ["p1"], "b": ["a1"]},
            "published_in": {"a": ["p1", "p2"], "b": ["ACL", "acl"]},
        },
    )


def complaint(name: str, *types: str) -> str:
    with pytest.raises(InputError) as caught:
        find_node(network(), name, types)
    return str(caught.value).removeprefix(f"{network().path}: ")


@pytest.mark.parametrize(
    ("name", "types", "node"),
    [
        ("a1", TYPES, Node("author", 0)),
        ("Jane Doe", ("paper",), Node("paper", 2)),
        ("Jane Doe", ("author",), Node("author", 0)),
        ("jane DOE", ("author",), Node("author", 0)),
        ("émile zola", TYPES, Node("author", 1)),
        ("Byzantine Generals", TYPES, Node("paper", 0)),  # as written comes before other capitals
        ("byzantine generals", TYPES, Node("paper", 3)),
        ("a6", TYPES, Node("author", 5)),  # which has no name
        ("p2", TYPES, Node("paper", 1)),  # which has no text
        ("ACL", TYPES, Node("venue", 0)),
        ("acl", TYPES, Node("venue", 1)),
    ],
)
def test_the_strictest_match_counts(name: str, types: tuple[str, ...], node: Node) -> None:
    assert find_node(network(), name, types) == node


def test_a_series_of_names_is_what_names_gives() -> None:
    for node_type in TYPES:
        assert network().name_series(node_type).to_list() == network().names(node_type)


def test_several_nodes_of_a_name_are_listed_by_id() -> None:
    expected = "2 nodes have the name 'John Smith'; use the id of one: author 'a3', author 'a4'."
    assert complaint("John Smith", *TYPES) == expected
    assert complaint("john smith", "author").startswith("3 nodes have the name 'john smith'; ")
    assert complaint("Twice", *TYPES).endswith(": paper 'x', author 'x'.")


def test_a_long_list_is_cut() -> None:
    with pytest.raises(InputError, match=r"use the id of one: author 'a3', …\.$"):
        find_node(network(), "John Smith", ["author"], max_listed=1)


def test_an_id_of_several_types() -> None:
    expected = "node_type is missing: the id 'x' exists in the node types 'paper', 'author'; choose one."
    assert complaint("x", *TYPES) == expected
    assert find_node(network(), "x", ["author"]) == Node("author", 7)


@pytest.mark.parametrize(
    ("name", "close"),
    [
        ("Jane Do", "'Jane Doe'"),
        ("Jnae Doe", "'Jane Doe'"),
        ("Doe, Jane", "'Jane Doe'"),
        ("aristotel", "'Aristotle'"),
        ("Byzantine General", "'Byzantine Generals'"),
        ("emile zola", "'Émile Zola'"),
    ],
)
def test_a_name_that_nobody_has_gets_close_ones(name: str, close: str) -> None:
    said = complaint(name, "author", "paper")
    assert said.startswith(f"there is no author or paper with the id or name {name!r} (did you mean ")
    assert close.lower() in said.lower()


@pytest.mark.parametrize("name", ["Wolfgang", "", "?", "q"])
def test_a_name_that_resembles_none(name: str) -> None:
    assert complaint(name, "author") == f"there is no author with the id or name {name!r}."


def test_a_very_long_name_is_cut_and_compared_by_its_beginning() -> None:
    built = Network.from_frames(
        {
            "nodes": {"paper": {"text": "title"}},
            "relations": {"cites": {"from": "paper", "to": "paper", "columns": ["a", "b"]}},
        },
        {"paper": {"id": ["p1", "p2"], "title": ["graph kernels", "poems"]}},
        {"cites": {"a": ["p1"], "b": ["p2"]}},
    )
    with pytest.raises(InputError) as caught:
        find_node(built, "x" * 120_000, ["paper"])
    assert len(str(caught.value)) < 200 + len(str(built.path))


def test_an_id_that_is_a_name_of_another_type_is_named_as_such() -> None:
    with pytest.raises(InputError) as caught:
        find_node(network(), "Jane Doe", TYPES)
    both = "'Jane Doe' is the id of a paper and the name of author 'a1'"
    assert str(caught.value) == f"node_type is missing: {both}; choose a type."
