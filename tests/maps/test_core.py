from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from heterformer.embedding.node_vectors import NodeVectors
from heterformer.errors import InputError
from heterformer.maps import core
from heterformer.maps.core import OTHER, UNLABELLED, Group, NodeMap, Selection, map_of
from heterformer.maps.options import MapOptions
from heterformer.network.store import Network
from tests.maps.mapping import FIELDS, PER_FIELD, labelled_network, of_all, planted_vectors, share_of_own

PAPERS = len(FIELDS) * PER_FIELD


@pytest.fixture(scope="module")
def network() -> Network:
    return labelled_network()


def mapped(network: Network, **options: Any) -> NodeMap:
    return map_of(network, of_all(planted_vectors(network)), MapOptions(**options))


def labels_of(*special: list[str]) -> list[list[str]]:
    """Of all papers: those given, then one field each."""
    usual = [[field] for field in np.repeat(FIELDS, PER_FIELD).tolist()]
    return [*special, *usual[len(special) :]]


def chosen(network: Network, **options: Any) -> Selection:
    return Selection.choose(network, network.schema.node_types, MapOptions(**options))


def test_papers_with_labels_are_shown_and_their_fields_lie_together(network: Network) -> None:
    found = mapped(network)
    assert (found.network, found.types, found.nodes) == ("fields", ("paper",), PAPERS)
    assert found.groups == tuple(Group(field, "class") for field in FIELDS)
    places = np.array([(p.x, p.y) for p in found.points])
    assert share_of_own(places, [p.label for p in found.points]) > 0.95
    assert found == mapped(network)


def test_a_point_says_what_the_network_knows(network: Network) -> None:
    points = {p.id: p for p in mapped(network).points}
    assert list(points) != network.ids("paper")  # the order is random
    assert sorted(points) == sorted(network.ids("paper"))
    point = points["p25"]
    assert (point.node_type, point.name, point.label) == ("paper", "On history 25", "history")
    assert point.group == Group("history", "class")


def test_classes_that_are_asked_for_are_all_that_is_shown(network: Network) -> None:
    found = mapped(network, classes=("physics", "biology"))
    assert [group.name for group in found.groups] == ["physics", "biology"]
    assert Counter(p.label for p in found.points) == {"physics": PER_FIELD, "biology": PER_FIELD}
    assert found.nodes == 2 * PER_FIELD


def test_several_labels_and_none() -> None:
    network = labelled_network(field=labels_of(["rare", "history", "biology"], ["rare"], []))
    points = {p.id: p for p in mapped(network, max_nodes=PAPERS, classes=()).points}
    assert points["p0"].label == "rare"  # there is room for it among eight
    assert (points["p2"].label, points["p2"].group) == (None, UNLABELLED)
    only = {p.id: p.label for p in mapped(network, classes=("biology", "history")).points}
    assert (only["p0"], "p1" in only, "p2" in only) == ("history", False, False)


def test_what_is_not_among_the_frequent_labels_is_grey_and_behind() -> None:
    many = [[f"label {i % 10}"] for i in range(45)] + [["label 0"], ["label 1"]]
    found = mapped(labelled_network(field=[*many, *([[]] * (PAPERS - 47))]))
    assert [g.name for g in found.groups[:3]] == ["label 0", "label 1", "label 2"]
    assert found.groups[8:] == (OTHER, UNLABELLED)
    grey = [p.group.grey for p in found.points]
    assert grey == sorted(grey, reverse=True)
    others = {p.label for p in found.points if p.group == OTHER}
    assert others == {"label 8", "label 9"}


def test_textless_nodes_stand_among_the_texts(network: Network) -> None:
    found = mapped(network, types=("paper", "author", "venue"))
    assert found.placed == ("author", "venue")
    assert Counter(p.node_type for p in found.points) == {"paper": PAPERS, "author": PAPERS, "venue": 4}
    assert {group.kind for group in found.groups} == {"class"}
    people = [p for p in found.points if p.node_type != "venue"]
    field = {i: field for i, (field,) in zip(network.ids("paper"), labels_of(), strict=True)}
    fields = [field[p.id.removeprefix("author of ")] for p in people]
    assert [p.label for p in people] == fields  # an author's is that of most of the papers
    assert share_of_own(np.array([(p.x, p.y) for p in people]), fields) > 0.9


def test_textless_nodes_alone(network: Network) -> None:
    found = mapped(network, types=("author",))
    assert (found.types, found.placed) == (("author",), ())
    assert Counter(p.label for p in found.points) == dict.fromkeys(
        ["biology", "history", "physics"], PER_FIELD
    )
    physics = mapped(network, types=("author",), classes=("physics",))
    assert Counter(p.label for p in physics.points) == {"physics": PER_FIELD}


def test_textless_nodes_whose_neighbours_have_no_label_are_grey() -> None:
    network = labelled_network(field=labels_of([]))
    points = {p.id: p for p in mapped(network, types=("paper", "author")).points}
    assert points["p0"].group == points["author of p0"].group == UNLABELLED
    assert points["author of p1"].group == points["p1"].group != UNLABELLED


def test_without_labels_all_types_are_shown_by_colour() -> None:
    found = mapped(labelled_network(field=None))
    assert found.types == ("paper", "author", "venue")
    assert found.groups == tuple(Group(t, "type") for t in found.types)
    assert all(p.label is None for p in found.points)


def test_a_sample_has_all_of_a_small_type(network: Network) -> None:
    options = {"types": ("paper", "author", "venue"), "max_nodes": 24}
    selection = chosen(network, **options)
    assert {t: len(rows) for t, rows in selection.rows.items()} == {"paper": 10, "author": 10, "venue": 4}
    assert selection.nodes == 2 * PAPERS + 4
    again, other = chosen(network, **options), chosen(network, **options, seed=1)
    assert np.array_equal(selection.rows["paper"], again.rows["paper"])
    assert not np.array_equal(selection.rows["paper"], other.rows["paper"])
    assert len(set(selection.rows["paper"])) == 10


@pytest.mark.parametrize("count", [1, 2, 3])
def test_very_few_nodes(network: Network, count: int) -> None:
    for types in (("paper",), ("paper", "author", "venue")):
        assert len(mapped(network, max_nodes=count, types=types).points) == count


def complaint(network: Network, vectors: dict[str, Any] | None = None, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        map_of(network, of_all(vectors or planted_vectors(network)), MapOptions(**options))
    return str(caught.value)


def test_mistakes_in_options(network: Network) -> None:
    assert complaint(network, types=("papper",)) == (
        "types has 'papper', expected some of 'paper', 'author', 'venue'."
    )
    assert complaint(network, classes=("poetry",)) == (
        "classes has 'poetry', expected a label of paper nodes: 'biology', 'history', 'physics'."
    )
    assert complaint(network, types=("author", "venue"), classes=("poetry",)) == (
        "classes has 'poetry', expected a label of author and venue nodes: 'biology', 'history', 'physics'."
    )
    assert complaint(labelled_network(field=None), types=("author", "venue"), classes=("poetry",)) == (
        "classes has 'poetry', but author and venue nodes have no labels."
    )


def test_only_nodes_with_vectors_are_shown(network: Network) -> None:
    papers = planted_vectors(network)["paper"]
    rows = np.arange(1, PAPERS, 2)
    found = map_of(network, {"paper": NodeVectors(rows, papers[rows])})
    assert {p.id for p in found.points} == set(network.ids("paper", rows))
    assert found.nodes == len(rows)
    places = {p.id: (p.x, p.y) for p in found.points}
    fields = [labels_of()[row][0] for row in rows]
    assert share_of_own(np.array([places[i] for i in network.ids("paper", rows)]), fields) > 0.9


def test_mistakes_in_vectors(network: Network) -> None:
    vectors = planted_vectors(network)
    papers = vectors["paper"]
    assert complaint(network, {"paper": papers}, types=("venue",)) == (
        "types has 'venue', but there are vectors of 'paper' only."
    )
    broken = papers.copy()
    broken[7, 2] = np.nan
    assert complaint(network, {"paper": broken}) == (
        "the vector of paper 'p7' has a value that is NaN or infinite; train or embed again."
    )
    short = {"paper": papers, "author": vectors["author"][:, :5]}
    assert complaint(network, short, types=("paper", "author")) == (
        "vectors of different types have [5, 16] numbers, expected equally many."
    )


def test_a_point_tells_all_labels_and_some_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    labels = [["biology", "history"], ["rare", "physics"], *[["biology"]] * 58]
    network = labelled_network(field=labels)
    points = {p.id: p for p in mapped(network).points}
    assert points["p0"].others == (Group("history", "class"),)
    assert points["p0"].labels == ("biology", "history")
    assert points["p5"].others == ()
    # It cites p4 and is cited by p6, has an author and a venue.
    assert points["p5"].degree == 4
    assert set(points["p5"].neighbors) == {"On biology 4", "On biology 6", "author of p5", "v1"}
    assert points["p5"].text == ""  # which its name is already


def test_a_large_map_says_how_long_it_takes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(core, "expected_seconds", lambda count, width, options: 200.0)
    network = labelled_network()
    map_of(network, of_all(planted_vectors(network)), announce_from=60)
    assert "laying out 60 nodes takes about 3 minutes\n" in capsys.readouterr().err
