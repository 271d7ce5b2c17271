from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest
import tyro

from heterformer.errors import InputError
from heterformer.network.label_options import LabelOptions
from heterformer.network.labels import (
    Labels,
    LeftOut,
    labelled_types,
    labels_of_type,
    neighbor_labels,
    own_labels,
)
from heterformer.network.store import Network

ANY = LabelOptions(min_members=1)


def library(
    papers: list[Any],
    authors: Sequence[tuple[int, str]] = (),
    editors: Sequence[tuple[int, str]] = (),
    books: list[Any] | None = None,
    book_authors: Sequence[tuple[int, str]] = (),
    author_fields: dict[str, str] | None = None,
) -> Network:
    """Papers p0, p1, ... with these labels, and who wrote or edited which, by number."""
    nodes: dict[str, Any] = {"paper": {"text": ["text"], "label": "label"}, "author": {}}
    count = len(papers)
    ids = [f"p{i:04}" for i in range(count)]
    text = [f"paper {i}" for i in range(count)]
    frames = {"paper": pl.DataFrame({"id": ids, "text": text, "label": papers}, strict=False)}
    cites = pl.DataFrame({"a": ids, "b": ids[1:] + ids[:1]})
    relations: dict[str, Any] = {"cites": {"from": "paper", "to": "paper", "columns": ["a", "b"]}}
    tables = {"cites": cites}
    given = {"written_by": ("paper", "p", authors), "edited_by": ("paper", "p", editors)}
    if books is not None:
        nodes["book"] = {"text": ["text"], "label": "label"}
        numbers = range(len(books))
        frames["book"] = pl.DataFrame(
            {"id": [f"b{i:04}" for i in numbers], "text": [f"book {i}" for i in numbers], "label": books}
        )
        given["book_by"] = ("book", "b", book_authors)
    for name, (source, letter, pairs) in given.items():
        if pairs:
            relations[name] = {"from": source, "to": "author", "columns": ["a", "b"]}
            ends = [(f"{letter}{number:04}", author) for number, author in pairs]
            tables[name] = pl.DataFrame(ends, schema={"a": str, "b": str}, orient="row")
    if author_fields is not None:
        nodes["author"] = {"label": "label"}
        columns = {"id": list(author_fields), "label": list(author_fields.values())}
        frames["author"] = pl.DataFrame(columns)
    if not authors and not editors and not book_authors:
        del nodes["author"]
    return Network.from_frames({"nodes": nodes, "relations": relations, "predict": "cites"}, frames, tables)


def by_row(labels: Labels) -> dict[int, set[str]]:
    """The classes of each labelled node."""
    found = zip(labels.rows.tolist(), labels.matrix, strict=True)
    return {row: {labels.classes[c] for c in np.flatnonzero(has)} for row, has in found}


def by_id(network: Network, node_type: str, labels: Labels) -> dict[str, set[str]]:
    return {network.ids(node_type, [row])[0]: classes for row, classes in by_row(labels).items()}


def some_labels(rows: list[int], classes: list[set[str]]) -> Labels:
    names = sorted(set().union(*classes))
    matrix = np.array([[name in has for name in names] for has in classes], dtype=bool)
    several = any(len(has) > 1 for has in classes)
    return Labels.from_matrix(np.array(rows), names, matrix.reshape(len(rows), len(names)), several, "paper")


# --- Own labels ------------------------------------------------------------------------------------------


def test_classes_are_in_order_of_frequency_and_then_of_name() -> None:
    network = library([["z"], ["b", "a"], ["z", "a"], ["b"], [], ["c"]])
    found = own_labels(network, "paper", ANY)
    assert found.classes == ("a", "b", "z", "c")
    assert found.members.tolist() == [2, 2, 2, 1]
    assert found.rows.tolist() == [0, 1, 2, 3, 5]
    assert by_row(found) == {0: {"z"}, 1: {"a", "b"}, 2: {"a", "z"}, 3: {"b"}, 5: {"c"}}
    assert found.multi
    assert found.node_type == "paper"


@pytest.mark.parametrize(
    ("given", "classes"),
    [
        ([1, 2, 2, None, 10], {0: {"1"}, 1: {"2"}, 2: {"2"}, 4: {"10"}}),
        ([1.0, float("nan"), 3.0], {0: {"1"}, 2: {"3"}}),
        ([True, False, None], {0: {"true"}, 1: {"false"}}),
        (["", " ", "a", None], {2: {"a"}}),
        ([["a", "", "a"], [None], []], {0: {"a"}}),
    ],
)
def test_numbers_are_names_and_gaps_are_no_class(given: list[Any], classes: dict[int, set[str]]) -> None:
    found = own_labels(library(given), "paper", ANY)
    assert by_row(found) == classes
    assert not found.multi


def test_rare_classes_are_left_out_and_so_are_nodes_without_another() -> None:
    network = library([["a"], ["a", "b"], ["b"], ["b", "c"], ["c"]])
    assert by_row(own_labels(network, "paper", LabelOptions(min_members=3))) == {1: {"b"}, 2: {"b"}, 3: {"b"}}
    found = own_labels(network, "paper", LabelOptions(min_members=1, top_classes=2))
    assert found.classes == ("b", "a")  # a and c are equally frequent
    assert by_row(found) == {0: {"a"}, 1: {"a", "b"}, 2: {"b"}, 3: {"b"}}


def test_the_default_takes_classes_of_ten_nodes() -> None:
    found = own_labels(library(["a"] * 10 + ["b"] * 9), "paper", LabelOptions())
    assert (found.classes, found.rows.tolist()) == (("a",), list(range(10)))


def test_only_the_first_label() -> None:
    network = library([["b", "a"], ["a", "b"], ["a"], []])
    found = own_labels(network, "paper", LabelOptions(min_members=1, label="first"))
    assert by_row(found) == {0: {"b"}, 1: {"a"}, 2: {"a"}}
    assert not found.multi
    rare = own_labels(network, "paper", LabelOptions(min_members=2, label="first"))
    assert by_row(rare) == {1: {"a"}, 2: {"a"}}  # a node's second label does not step in


def test_no_class_is_left() -> None:
    found = own_labels(library(["a", "b"]), "paper", LabelOptions())
    assert (len(found), found.classes, found.matrix.shape) == (0, (), (0, 0))


def test_too_many_classes() -> None:
    with pytest.raises(InputError) as caught:
        own_labels(library(["a", "b", "c"]), "paper", ANY, most_cells=8)
    assert str(caught.value) == (
        "paper: 3 classes of 3 nodes are too many to tell apart; "
        "choose fewer with top_classes or min_members."
    )


# --- What is left out -------------------------------------------------------------------------------------


def test_classes_and_nodes_that_do_not_count_are_told() -> None:
    network = library([["a"]] * 12 + [["b"]] * 12 + [["c"]] * 2 + [["d", "a"]] + [["d"]] * 8 + [[]] * 5)
    found = own_labels(network, "paper", LabelOptions())
    (rare,) = found.left_out
    assert rare == LeftOut("fewer than 10 nodes", classes=2, nodes=10, such_as=("d", "c"))
    assert str(rare) == "2 classes ('d', 'c') and 10 nodes with no other class left out: fewer than 10 nodes"
    assert found.restricted(np.arange(9)).single().with_members(2).left_out == (rare,)
    few = own_labels(network, "paper", LabelOptions(min_members=9, top_classes=2)).left_out
    assert [(one.reason, one.classes, one.nodes, one.such_as) for one in few] == [
        ("fewer than 9 nodes", 1, 2, ("c",)),
        ("not among the 2 most frequent", 1, 8, ("d",)),
    ]
    assert own_labels(network, "paper", ANY).left_out == ()


def test_what_authors_lack_of_their_papers_classes_is_told() -> None:
    papers = ["a", "a", "a", "b", "b", "c"]
    wrote = [(0, "x"), (1, "x"), (3, "x"), (2, "y"), (4, "z"), (5, "w"), (5, "y")]
    network = library(papers, wrote)
    found = neighbor_labels(network, "author", "paper", LabelOptions(min_members=2))
    assert by_id(network, "author", found) == {"x": {"a"}, "y": {"a"}}
    assert [(one.classes, one.nodes, one.such_as) for one in found.left_out] == [
        (1, 1, ("c",)),  # one paper has it: w has no class
        (1, 1, ("b",)),  # the majority of z alone
    ]
    every = LabelOptions(min_members=1, textless="share", textless_share=0.9)
    shared = neighbor_labels(network, "author", "paper", every)
    assert by_id(network, "author", shared) == {"z": {"b"}, "w": {"c"}}
    assert [(one.classes, one.nodes, one.such_as) for one in shared.left_out] == [(1, 2, ("a",))]


@pytest.mark.parametrize(
    ("papers", "complaint"),
    [
        (
            ["a"] * 12 + ["b"],
            "paper: all 12 nodes that are left have the class 'a' (1 class ('b') and 1 node with no other "
            "class left out: fewer than 10 nodes; the options min_members and top_classes of labels say "
            "which classes count), expected at least two classes.",
        ),
        (
            [str(i) for i in range(5)],
            "paper: no node has a class that counts (5 classes ('0', '1', '2', …) and 5 nodes with no other "
            "class left out: fewer than 10 nodes; the options min_members and top_classes of labels say "
            "which classes count), expected at least two classes.",
        ),
    ],
)
def test_why_there_are_no_two_classes(papers: list[str], complaint: str) -> None:
    found = own_labels(library(papers), "paper", LabelOptions())
    with pytest.raises(InputError) as caught:
        found.check_classes()
    assert str(caught.value) == complaint


# --- Labels from neighbours ------------------------------------------------------------------------------


def test_the_majority_of_an_authors_papers() -> None:
    papers = ["a", "b", "b", None, None, None]
    wrote = [(0, "x"), (1, "x"), (2, "x"), (3, "x"), (4, "x"), (0, "y"), (5, "z")]
    network = library(papers, wrote)
    found = neighbor_labels(network, "author", "paper", ANY)
    assert by_id(network, "author", found) == {"x": {"b"}, "y": {"a"}}  # z's paper has no label
    assert not found.multi
    assert found.node_type == "author"


def test_a_tie_goes_to_the_class_that_more_papers_have_and_then_to_the_first_name() -> None:
    papers = ["z", "z", "z", "b", "b", "a", "a"]
    wrote = [
        (0, "x"),
        (5, "x"),
        (3, "y"),
        (6, "y"),
        (0, "w"),
        (3, "w"),
        (5, "w"),
        (4, "v"),
        (5, "v"),
        (6, "v"),
    ]
    network = library(papers, wrote)
    found = neighbor_labels(network, "author", "paper", ANY)
    assert by_id(network, "author", found) == {"x": {"z"}, "y": {"a"}, "w": {"z"}, "v": {"a"}}


def test_all_classes_of_a_paper_vote() -> None:
    network = library([["a", "b"], ["b", "c"], ["a", "c"], ["a"]], [(0, "x"), (1, "x"), (1, "y"), (2, "y")])
    found = neighbor_labels(network, "author", "paper", ANY)
    assert by_id(network, "author", found) == {"x": {"b"}, "y": {"c"}}
    first = LabelOptions(min_members=1, label="first")
    assert by_id(network, "author", neighbor_labels(network, "author", "paper", first)) == {
        "x": {"a"},
        "y": {"a"},
    }


def test_a_paper_counts_once_however_it_is_joined() -> None:
    network = library(["a", "b", "b", "a", "a"], [(0, "x"), (1, "x"), (2, "x")], [(0, "x")])
    found = neighbor_labels(network, "author", "paper", ANY)
    assert by_id(network, "author", found) == {"x": {"b"}}  # twice a would be a tie, which a wins


def test_a_label_that_a_paper_has_twice_counts_once() -> None:
    network = library([["a", "a"], ["b"], ["b"], ["a"], ["a"]], [(0, "x"), (1, "x"), (2, "x")])
    own = own_labels(network, "paper", LabelOptions(min_members=4))
    assert own.classes == ()
    assert not own_labels(network, "paper", ANY).multi
    assert by_id(network, "author", neighbor_labels(network, "author", "paper", ANY)) == {"x": {"b"}}


def test_every_class_that_a_share_of_the_papers_have() -> None:
    papers = [["a", "b"], ["a"], ["c"], ["a", "c"], None]
    wrote = [(0, "x"), (1, "x"), (2, "x"), (3, "x"), (4, "x"), (0, "y"), (2, "z"), (1, "z"), (0, "z")]
    network = library(papers, wrote)

    def classes(share: float) -> dict[str, set[str]]:
        options = LabelOptions(min_members=1, textless="share", textless_share=share)
        return by_id(network, "author", neighbor_labels(network, "author", "paper", options))

    # x: a 3, b 1, c 2 of four labelled papers; y: a 1, b 1 of one; z: a 2, b 1, c 1 of three
    assert classes(0.5) == {"x": {"a", "c"}, "y": {"a", "b"}, "z": {"a"}}
    assert classes(0.51) == {"x": {"a"}, "y": {"a", "b"}, "z": {"a"}}
    assert classes(0.75) == {"x": {"a"}, "y": {"a", "b"}}
    assert classes(0.25) == {"x": {"a", "b", "c"}, "y": {"a", "b"}, "z": {"a", "b", "c"}}


def test_classes_are_chosen_among_the_papers_and_then_among_the_authors() -> None:
    papers = ["a", "a", "a", "b", "b", "c"]
    wrote = [(0, "v"), (1, "w"), (3, "x"), (4, "x"), (5, "x"), (5, "y")]
    network = library(papers, wrote)
    top = neighbor_labels(network, "author", "paper", LabelOptions(min_members=1, top_classes=2))
    assert by_id(network, "author", top) == {"v": {"a"}, "w": {"a"}, "x": {"b"}}
    frequent = neighbor_labels(network, "author", "paper", LabelOptions(min_members=2))
    assert by_id(network, "author", frequent) == {"v": {"a"}, "w": {"a"}}  # b: two papers, one author


def test_several_types_vote_together() -> None:
    network = library(
        ["a", "b", "b"],
        [(0, "x"), (1, "x"), (0, "y")],
        books=["a", "c", "c"],
        book_authors=[(0, "x"), (0, "z"), (1, "y"), (2, "y")],
    )
    found = neighbor_labels(network, "author", ("paper", "book"), ANY)
    assert by_id(network, "author", found) == {"x": {"a"}, "y": {"c"}, "z": {"a"}}
    assert by_id(network, "author", labels_of_type(network, "author", ANY)) == by_id(network, "author", found)
    assert by_id(network, "author", neighbor_labels(network, "author", "book", ANY))["x"] == {"a"}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("share", [None, 0.3, 0.5])
def test_aggregation_is_what_its_definition_says(seed: int, share: float | None) -> None:
    rng = np.random.default_rng(seed)
    papers = [[f"c{c}" for c in range(6) if rng.random() < 0.25] for _ in range(60)]
    wrote = sorted({(int(rng.integers(60)), f"x{rng.integers(25)}") for _ in range(150)})
    edited = sorted({(int(rng.integers(60)), f"x{rng.integers(25)}") for _ in range(40)})
    network = library(papers, wrote, edited)
    rule = {} if share is None else {"textless": "share", "textless_share": share}
    options = LabelOptions(min_members=3, **rule)  # type: ignore[arg-type]
    frequency = Counter(name for has in papers for name in has)
    expected = {}
    for author in {author for _, author in wrote + edited}:
        voters = [papers[p] for p in {p for p, a in wrote + edited if a == author} if papers[p]]
        votes = Counter(name for has in voters for name in has)
        if share is not None:
            expected[author] = {name for name in votes if votes[name] / len(voters) >= share}
        elif votes:
            expected[author] = {min(votes, key=lambda name: (-votes[name], -frequency[name], name))}
    members = Counter(name for has in expected.values() for name in has)
    expected = {a: {n for n in has if members[n] >= 3} for a, has in expected.items()}
    found = neighbor_labels(network, "author", "paper", options)
    assert by_id(network, "author", found) == {a: has for a, has in expected.items() if has}
    assert found.classes == tuple(sorted(set(found.classes), key=lambda n: (-members[n], n)))


# --- All types -------------------------------------------------------------------------------------------


def test_types_with_labels_and_textless_types_next_to_them() -> None:
    network = library(["a", "b"], [(0, "x"), (1, "y")])
    assert list(labelled_types(network)) == ["paper", "author"]


def test_a_textless_type_with_labels_of_its_own_keeps_them() -> None:
    network = library(["a", "b"], [(0, "x"), (1, "y")], author_fields={"x": "poet", "y": "poet"})
    found = {t: labels_of_type(network, t, ANY) for t in labelled_types(network)}
    assert by_id(network, "author", found["author"]) == {"x": {"poet"}, "y": {"poet"}}
    assert by_id(network, "paper", found["paper"]) == {"p0000": {"a"}, "p0001": {"b"}}


def test_types_out_of_reach_have_no_labels() -> None:
    text = {"id": ["1", "2"], "text": ["some words", "other words"]}
    network = Network.from_frames(
        {
            "nodes": {
                "paper": {"text": ["text"]},
                "tag": {"label": "kind"},
                "user": {},
                "club": {},
            },
            "relations": {
                "cites": {"from": "paper", "to": "paper", "columns": ["a", "b"]},
                "tagged": {"from": "paper", "to": "tag", "columns": ["a", "b"]},
                "likes": {"from": "user", "to": "tag", "columns": ["a", "b"]},
                "in": {"from": "user", "to": "club", "columns": ["a", "b"]},
            },
            "predict": "cites",
        },
        {"paper": pl.DataFrame(text), "tag": pl.DataFrame({"id": ["t", "s"], "kind": ["k", None]})},
        {
            "cites": pl.DataFrame({"a": ["1", "2"], "b": ["2", "1"]}),
            "tagged": pl.DataFrame({"a": ["1"], "b": ["t"]}),
            "likes": pl.DataFrame({"a": ["u", "v"], "b": ["t", "s"]}),
            "in": pl.DataFrame({"a": ["u"], "b": ["c"]}),
        },
    )
    found = {t: labels_of_type(network, t, ANY) for t in labelled_types(network)}
    assert {t: by_id(network, t, labels) for t, labels in found.items()} == {
        "tag": {"t": {"k"}},
        "user": {"u": {"k"}},  # the text-rich paper has none of its own, the club is next to nobody labelled
    }


def test_a_network_without_labels() -> None:
    text = pl.DataFrame({"id": ["1", "2"], "text": ["some words", "other words"]})
    cites = pl.DataFrame({"a": ["1", "2"], "b": ["2", "1"]})
    relations = {"cites": {"from": "paper", "to": "paper", "columns": ["a", "b"]}}
    spec = {"nodes": {"paper": {"text": ["text"]}}, "relations": relations}
    with pytest.raises(InputError, match=r"no node type has a 'label' column in its specification\.$"):
        labelled_types(Network.from_frames(spec, {"paper": text}, {"cites": cites}))


# --- Parts of labels -------------------------------------------------------------------------------------


def test_nodes_with_exactly_one_class() -> None:
    found = some_labels([2, 5, 7, 9], [{"a", "b"}, {"a"}, {"c"}, {"c"}]).single()
    assert by_row(found) == {5: {"a"}, 7: {"c"}, 9: {"c"}}
    assert found.classes == ("c", "a")  # in the order of what is left
    assert found.codes.tolist() == [1, 0, 0]
    assert not found.multi


def test_codes_of_several_classes_are_an_error() -> None:
    with pytest.raises(ValueError, match=r"take single\(\) first"):
        _ = some_labels([1], [{"a", "b"}]).codes


def test_only_nodes_among_given_rows() -> None:
    labels = some_labels([2, 5, 7], [{"a", "b"}, {"a"}, {"c"}])
    found = labels.restricted(np.array([7, 5, 100], dtype=np.int32))
    assert by_row(found) == {5: {"a"}, 7: {"c"}}
    assert found.classes == ("a", "c")
    assert found.multi  # a part of nodes that may have several
    assert found.node_type == "paper"
    assert len(labels.restricted(np.zeros(0, dtype=np.int64))) == 0


def test_only_frequent_or_named_classes() -> None:
    labels = some_labels([2, 5, 7], [{"a", "b"}, {"a"}, {"c"}])
    assert by_row(labels.with_members(2)) == {2: {"a"}, 5: {"a"}}
    assert by_row(labels.of_classes(["b", "c"])) == {2: {"b"}, 7: {"c"}}
    assert labels.with_members(3).classes == ()


def test_a_sample_and_its_vectors() -> None:
    labels = some_labels(list(range(0, 200, 2)), [{"ab"[i % 2]} for i in range(100)])
    vectors = np.arange(0, 200, 2, dtype=np.float32)[:, None]  # each node's own row
    found = labels.sample(30, np.random.default_rng(0))
    assert len(found) == 30
    assert found.rows.tolist() == sorted(set(found.rows.tolist()))
    assert found.vectors_by(lambda rows: vectors[rows // 2])[:, 0].tolist() == found.rows.tolist()
    assert by_row(found).items() <= by_row(labels).items()
    assert labels.sample(100, np.random.default_rng(0)) is labels.sample(None, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("classes", "vectors", "complaint"),
    [
        (
            [{"a"}, {"b"}],
            np.zeros((3, 2)),
            "paper: found an array of shape (3, 2) for 2 labelled nodes, expected a vector for each.",
        ),
        (
            [{"a"}, {"b"}],
            np.zeros(2),
            "paper: found an array of shape (2,) for 2 labelled nodes, expected a vector for each.",
        ),
        (
            [{"a"}, {"b"}, {"b"}],
            np.array([[0, 0], [0, np.nan], [np.inf, 0]]),
            "paper: 2 of 3 vectors hold NaN or infinity, the first that of row 11; expected numbers.",
        ),
    ],
)
def test_vectors_that_do_not_fit(classes: list[set[str]], vectors: Any, complaint: str) -> None:
    labels = some_labels([10 + i for i in range(len(classes))], classes)
    with pytest.raises(InputError) as caught:
        labels.vectors_by(lambda _: vectors)
    assert str(caught.value) == complaint


def test_a_single_class() -> None:
    with pytest.raises(InputError) as caught:
        some_labels([10, 11], [{"a"}, {"a"}]).check_classes()
    problem = "all 2 labelled nodes have the class 'a', expected at least two classes."
    assert str(caught.value) == f"paper: {problem}"


def test_no_labelled_node() -> None:
    none = some_labels([1], [{"a"}]).with_members(2)
    with pytest.raises(InputError) as caught:
        none.check_classes()
    assert str(caught.value) == "paper: no node has a class, expected at least two classes."


# --- Options ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"top_classes": 1}, "top_classes is 1, expected at least 2 or None."),
        ({"min_members": 0}, "min_members is 0, expected at least 1."),
        ({"textless_share": 0.0}, "textless_share is 0.0, expected a share above 0 and up to 1."),
        ({"textless_share": 1.1}, "textless_share is 1.1, expected a share above 0 and up to 1."),
    ],
)
def test_options_out_of_range(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError) as caught:
        LabelOptions(**options)
    assert str(caught.value) == complaint


def test_options_are_flags() -> None:
    given = ["--top-classes", "30", "--label", "first", "--textless", "share", "--textless-share", ".2"]
    assert tyro.cli(LabelOptions, args=given) == LabelOptions(30, 10, "first", "share", 0.2)
