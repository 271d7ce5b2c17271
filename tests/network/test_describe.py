"""The description: counts, degrees, lengths, labels, and a warning for each thing that hurts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest

from heterformer import Network
from heterformer.network.describe import Degrees, describe


def network(
    titles: list[str],
    cites: list[tuple[int, int]],
    venues: Sequence[tuple[int, str]] = (),
    topics: list[Any] | None = None,
    **more: Any,
) -> Network:
    """Papers p0, p1, ... with titles, citations, venues and topics."""
    papers: dict[str, Any] = {"id": [f"p{i}" for i in range(len(titles))], "title": titles}
    node = {"text": "title"}
    if topics is not None:
        papers["topic"], node["label"] = topics, "topic"
    nodes: dict[str, Any] = {"paper": node}
    relations: dict[str, Any] = {"cites": {"from": "paper", "to": "paper", "columns": ["a", "b"]}}
    tables = {"cites": {"a": [f"p{a}" for a, _ in cites], "b": [f"p{b}" for _, b in cites]}}
    if venues:
        nodes["venue"] = None
        relations["in"] = {"from": "paper", "to": "venue", "columns": ["a", "b"]}
        tables["in"] = {"a": [f"p{a}" for a, _ in venues], "b": [v for _, v in venues]}
    return Network.from_frames({"nodes": nodes, "relations": relations, **more}, {"paper": papers}, tables)


def chain(count: int) -> list[tuple[int, int]]:
    return [(i, i + 1) for i in range(count - 1)]


def titles(count: int) -> list[str]:
    return [f"title number {i}" for i in range(count)]


def test_a_sound_network_is_described_without_warnings() -> None:
    venues = [(0, "ACL"), (1, "ACL"), (2, "ICML"), (3, "ICML")]
    topics = [["x"], ["x", "y"], [], ["x"]]
    found = describe(
        network(["a b c", "d", "e f", "g h i j"], [(0, 1), (0, 2), (1, 2), (3, 0)], venues, topics)
    )
    assert found.warnings == ()
    paper, venue = found.nodes
    assert (paper.node_type, paper.count, paper.isolated) == ("paper", 4, 0)
    assert paper.texts is not None
    lengths = paper.texts
    assert (lengths.mean, lengths.median, lengths.longest) == (2.5, 2.5, 4)
    assert (lengths.empty, lengths.repeated, lengths.over_limit) == (0, 0, 0)
    assert (paper.labelled, paper.classes) == (3, {"x": 3, "y": 1})
    assert (venue.count, venue.texts, venue.labelled, venue.classes) == (2, None, None, {})
    cites, at = found.relations
    assert (cites.edges, at.edges) == (4, 4)
    assert cites.source == Degrees(nodes=3, mean=4 / 3, median=1.0, highest=2, hub="p0")
    assert cites.target == Degrees(nodes=3, mean=4 / 3, median=1.0, highest=2, hub="p2")
    assert at.target == Degrees(nodes=2, mean=2.0, median=2.0, highest=2, hub="ACL")


def test_a_relation_without_edges_has_no_degrees() -> None:
    relations = {n: {"from": "paper", "to": "paper", "columns": ["a", "b"]} for n in ("cites", "extends")}
    built = Network.from_frames(
        {"nodes": {"paper": {"text": "title"}}, "relations": relations, "predict": "cites"},
        {"paper": {"id": ["p0", "p1"], "title": ["a", "b"]}},
        {"cites": {"a": ["p0"], "b": ["p1"]}, "extends": pl.DataFrame(schema={"a": str, "b": str})},
    )
    assert describe(built).relations[1].source == Degrees(0, 0.0, 0.0, 0, "")


def warnings(built: Network) -> list[str]:
    return list(describe(built).warnings)


def test_isolated_nodes_are_warned_of() -> None:
    assert warnings(network(titles(4), chain(3))) == ["1 paper nodes (25.0%) have no edges."]


def test_empty_texts_are_warned_of() -> None:
    assert warnings(network(["a", "", " ", "b"], chain(4))) == ["2 paper nodes (50.0%) have an empty text."]


def test_repeated_texts_are_warned_of() -> None:
    assert warnings(network(["a", "b", "a", "a"], chain(4))) == [
        "50.0% of the paper texts are exact copies of another node's text."
    ]


def test_texts_that_are_cut_are_warned_of() -> None:
    built = network(["one two three four", "one two three", "one"], chain(3), max_tokens=3)
    assert warnings(built) == [
        "at least 33% of the paper texts are truncated: they have more words than max_tokens = 3."
    ]


@pytest.mark.parametrize(("degree", "warned"), [(100, True), (99, False)])
def test_a_hub_is_warned_of(degree: int, warned: bool) -> None:
    venues = [(i, "arXiv" if i < degree else f"v{i}") for i in range(200)]
    expected = (
        "venue 'arXiv' is a hub of 'in': it has 100 edges (50% of all paper nodes) "
        "and says little about any of them."
    )
    assert warnings(network(titles(200), chain(200), venues)) == [expected] * warned


def test_a_paper_that_cites_everything_is_a_hub() -> None:
    cites = chain(120) + [(0, i) for i in range(2, 120)]
    assert warnings(network(titles(120), cites)) == [
        "paper 'p0' is a hub of 'cites': it has 119 edges (99% of all paper nodes) "
        "and says little about any of them."
    ]


@pytest.mark.parametrize(("odd_ones", "warned"), [(0, True), (1, True), (4, False)])
def test_a_relation_that_says_what_the_label_says_is_warned_of(odd_ones: int, warned: bool) -> None:
    topics = ["AI" if i % 2 else "DB" for i in range(100)]
    venues = [(i, f"{topics[i + (i < odd_ones)]} conference") for i in range(100)]
    expected = (
        f"relation 'in' leaks the label of paper nodes ({100 - odd_ones:.1f}% of its edges): "
        "remove it before classification."
    )
    assert warnings(network(titles(100), chain(100), venues, topics)) == [expected] * warned


def test_many_small_venues_of_one_topic_each_are_no_leak() -> None:
    topics = ["AI" if i % 2 else "DB" for i in range(100)]
    venues = [(i, f"venue {i}") for i in range(100)]
    assert warnings(network(titles(100), chain(100), venues, topics)) == []


def test_a_relation_that_says_all_labels_of_nodes_with_several_is_warned_of() -> None:
    topics = [["a", "b"], ["b", "c"], ["c", "a"]] * 10
    venues = [(i, topic) for i, some in enumerate(topics) for topic in some]
    built = network(titles(30), chain(30), venues, topics)
    assert any("'in' leaks the label" in warning for warning in warnings(built))


def test_a_relation_that_tells_no_more_than_the_commonest_label_is_not_warned_of() -> None:
    topics = [["all", "a" if i % 2 else "b"] for i in range(40)]
    built = network(titles(40), chain(40), [(i, f"v{i % 3}") for i in range(40)], topics)
    assert not any("leaks the label" in warning for warning in warnings(built))


def test_the_most_linked_nodes_and_examples_of_each_type() -> None:
    venues = [(0, "ACL"), (1, "ACL"), (2, "ICML"), (3, "KDD"), (4, "ACL")]
    paper, venue = describe(network(titles(5), chain(5), venues)).nodes
    assert venue.most_linked == (("ACL", 3), ("ICML", 1), ("KDD", 1))
    assert (venue.single_edge, venue.examples) == (2, ("ACL", "ICML", "KDD"))
    assert paper.most_linked[0] == ("title number 1", 3)  # two citations and a venue
    assert paper.examples == ("title number 0", "title number 2", "title number 4")


def test_a_forgotten_separator_is_warned_of() -> None:
    built = network(titles(3), chain(3), [(0, "Ada;Bo"), (1, "Bo"), (2, "Cy")])
    assert warnings(built) == [
        "1 venue ids look like lists ('Ada;Bo'): set separator: ';' in the relations that name them."
    ]


def test_labels_of_one_class_are_warned_of() -> None:
    assert warnings(network(titles(3), chain(3), topics=["x", "x", None])) == [
        "all labelled paper nodes have the one class 'x': there is nothing to classify."
    ]


@pytest.mark.parametrize(("count", "too_small"), [(3, True), (30, False)])
def test_a_network_that_is_too_small_to_train(count: int, too_small: bool) -> None:
    reason = describe(network(titles(count), chain(count))).too_small
    expected = "relation 'cites' has 2 query nodes, too few for a train, a validation and a test part; "
    assert (reason or "").startswith(expected) is too_small
    assert (reason is not None) is too_small
