"""A network in the terminal."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from heterformer import Network
from heterformer.network.describe import describe
from heterformer.network.describe_table import description


def rendered(what: Any) -> str:
    console = Console(file=io.StringIO(), width=200)
    console.print(what)
    output = console.file
    assert isinstance(output, io.StringIO)
    return output.getvalue()


def cells(text: str, start: str) -> list[str]:
    """The cells of the table row that starts so."""
    (line,) = [line for line in text.splitlines() if line.startswith(f"│ {start} ")]
    return [cell.strip() for cell in line.strip("│").split("│")]


def network(name: str = "small", topics: tuple[str, ...] = ("AI", "AI", "DB")) -> Network:
    papers = {"id": ["p1", "p2", "p3"], "title": ["one two", "", "three"], "topic": topics}
    ends = {"from": "paper", "to": "paper", "columns": ["a", "b"]}
    nodes = {"paper": {"text": "title", "label": "topic"}, "venue": None}
    relations = {"cites": ends, "in": {**ends, "to": "venue"}}
    return Network.from_frames(
        {"name": name, "nodes": nodes, "relations": relations, "predict": "cites"},
        {"paper": papers},
        {"cites": {"a": ["p1", "p2"], "b": ["p2", "p3"]}, "in": {"a": ["p1"], "b": ["ACL"]}},
    )


def test_a_description_is_shown_as_the_papers_data_table_with_warnings() -> None:
    shown = rendered(description(describe(network())))
    assert "small: nodes (*: text-rich)" in shown
    assert cells(shown, "paper*") == ["paper*", "3", "0", "1.0", "1", "2", "1"]
    assert cells(shown, "venue") == ["venue", "1", "0", "", "", "", ""]
    assert cells(shown, "cites (predicted)")[1:] == ["paper → paper", "2", "1.0 / 1 / 1", "1.0 / 1 / 1"]
    assert cells(shown, "in")[1:3] == ["paper → venue", "1"]
    assert cells(shown, "paper") == ["paper", "3", "one", "2", "AI 2, DB 1"]
    assert "warning: 1 paper nodes (33.3%) have an empty text." in shown


def test_of_many_classes_the_most_frequent_are_shown() -> None:
    topics = [f"c{i}" for i in range(10) for _ in range(10 - i)]
    count = len(topics)
    ids = [str(i) for i in range(count)]
    found = describe(
        Network.from_frames(
            {
                "nodes": {"paper": {"text": "text", "label": "topic"}},
                "relations": {"cites": {"from": "paper", "to": "paper", "columns": ["a", "b"]}},
            },
            {"paper": {"id": ids, "text": [f"word {i}" for i in ids], "topic": topics}},
            {"cites": {"a": ids[1:], "b": ids[:-1]}},
        )
    )
    frequent = ", ".join(f"c{i} {10 - i}" for i in range(8)) + ", …"
    assert cells(rendered(description(found)), "paper") == [
        "paper",
        "55",
        "one",
        "10",
        frequent,
    ]


def test_a_network_without_labels_has_no_label_table() -> None:
    unlabelled = Network.from_frames(
        {
            "nodes": {"paper": {"text": "text"}},
            "relations": {"cites": {"from": "paper", "to": "paper", "columns": ["a", "b"]}},
        },
        {"paper": {"id": ["1", "2"], "text": ["a", "b"]}},
        {"cites": {"a": ["1"], "b": ["2"]}},
    )
    assert "labels" not in rendered(description(describe(unlabelled)))


@pytest.mark.parametrize("odd", ["[/]", "[bold]x", "a:key:b", "\\[x]"])
def test_what_the_user_wrote_is_shown_as_it_is(odd: str) -> None:
    found = describe(network(name=odd, topics=(odd, odd, "DB")))
    shown = rendered(description(found))
    assert f"{odd}: nodes" in shown
    assert cells(shown, "paper")[-1] == f"{odd} 2, DB 1"


def test_nodes_are_named_and_a_small_network_is_called_so() -> None:
    shown = rendered(description(describe(network())))
    assert "paper: most linked: one two (2) · p2 (2) · three (1); for example: one two · p2 · three" in shown
    assert "venue: 100% have one edge; most linked: ACL (1); for example: ACL" in shown
    assert "warning: too small to train: relation 'cites' has 2 query nodes, " in shown


def test_attributes_weights_and_times_are_described() -> None:
    papers = {"id": ["a", "b", "c"], "title": ["x", "y", "z"], "year": [1, None, 3], "kind": ["p", "q", "q"]}
    cites = {"a": ["a", "b"], "b": ["b", "c"], "w": [0.5, 2.0], "t": [2001, 2002]}
    spec = {
        "nodes": {"paper": {"text": "title", "attributes": ["year", "kind"]}},
        "relations": {
            "cites": {"from": "paper", "to": "paper", "columns": ["a", "b"], "weight": "w", "time": "t"}
        },
    }
    summary = describe(Network.from_frames(spec, {"paper": papers}, {"cites": cites}))
    year, kind = summary.nodes[0].attributes
    assert (year.name, year.kind, year.missing, year.distinct, year.range) == ("year", "number", 1, 2, (1, 3))
    assert (kind.kind, kind.missing, kind.frequent) == ("category", 0, (("q", 2), ("p", 1)))
    assert summary.relations[0].ranges == {"weight": (0.5, 2.0), "time": (2001, 2002)}
    shown = rendered(description(summary))
    assert "cites: weights 0.5 to 2, times 2001 to 2002" in shown
    assert "1 to 3" in shown
