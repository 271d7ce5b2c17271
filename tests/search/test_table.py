from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from heterformer.search.searcher import Answer, Hit, NamedNode, Ranking, SupportingNeighbor
from heterformer.search.table import as_json, ranking_table, search_tables

LONG = "word " * 100


def answer(name: str = "Kernel methods", known: bool = False) -> Answer:
    supporting = (
        SupportingNeighbor("author", "a1", "Jane Doe", 0.5),
        SupportingNeighbor("venue", "v1", "v1", 0.25),
    )
    papers = (Hit("p1", name, 12.345678, known, supporting), Hit("p2", "p2", -0.00012344, False, ()))
    rankings = (Ranking("paper", 12345, "exact", papers), Ranking("venue", 7, "approximate", ()))
    return Answer("kernels", (), None, rankings)


def shown(found: Answer, width: int = 120) -> str:
    output = io.StringIO()
    Console(file=output, width=width).print(search_tables(found))
    return output.getvalue()


def rows(text: str) -> list[list[str]]:
    return [[c.strip() for c in line.strip("│").split("│")] for line in text.splitlines() if line[0] == "│"]


def test_the_caption_says_that_links_count() -> None:
    rankings = [Ranking("paper", 12345, "exact", (), weight) for weight in (0.0, 0.5)]
    captions = [ranking_table("for 'x'", ranking).caption for ranking in rankings]
    assert captions[0] == "inner product, exact search among 12,345 nodes"
    assert captions[1] == "inner product and links, weight 0.5, exact search among 12,345 nodes"


def test_a_row_per_result_with_its_supporting_neighbours() -> None:
    assert rows(shown(answer())) == [
        ["1", "12.35", "Kernel methods p1", "author: Jane Doe"],
        ["", "", "", "venue: v1"],
        ["2", "-0.0001234", "p2", ""],
    ]


def test_a_table_per_type_says_how_it_was_searched() -> None:
    text = " ".join(shown(answer()).split())
    assert text.index("paper nodes for 'kernels'") < text.index("venue nodes for 'kernels'")
    assert "inner product, exact search among 12,345 nodes" in text
    assert "inner product, approximate search among 7 nodes" in text
    assert "*" not in text


def test_the_title_says_what_was_asked() -> None:
    jane, acl = NamedNode("author", "a1", "Jane Doe"), NamedNode("venue", "acl", "acl")
    titles = [shown(replace(answer(), neighbors=(jane, acl))), shown(replace(answer(), text="", like=jane))]
    assert "paper nodes for 'kernels' with author: Jane Doe, venue: acl" in " ".join(titles[0].split())
    assert "paper nodes like author: Jane Doe" in " ".join(titles[1].split())


def test_known_neighbours_are_marked() -> None:
    text = shown(answer(known=True))
    assert rows(text)[0][0] == "1*"
    assert "exact search among 12,345 nodes; *: already a neighbour of the query" in " ".join(text.split())


def test_a_long_text_is_cut_in_the_table_only() -> None:
    cells = rows(shown(answer(LONG), width=400))
    assert cells[0][2] == LONG[:99] + "… p1"
    assert as_json(answer(LONG))["rankings"][0]["hits"][0]["name"] == LONG


def test_a_neighbour_takes_one_line_of_a_narrow_terminal() -> None:
    hit = Hit(
        "p1",
        "p1",
        0.5,
        False,
        (SupportingNeighbor("paper", "p2", LONG, 1.0), SupportingNeighbor("venue", "v1", "v1", 1.0)),
    )
    cells = rows(shown(Answer("x", (), None, (Ranking("paper", 2, "exact", (hit,)),)), width=60))
    assert [row[1] for row in cells] == ["0.5000", ""]
    assert cells[0][3].startswith("paper: word word")
    assert cells[0][3].endswith("…")
    assert cells[1][3] == "venue: v1"


@pytest.mark.parametrize("odd", ["[/b]", "[bold]x", ":key:", "two\n  lines"])
def test_names_are_shown_as_they_are(odd: str) -> None:
    assert rows(shown(answer(odd)))[0][2] == f"{' '.join(odd.split())} p1"


def test_json_holds_everything() -> None:
    values = json.loads(json.dumps(as_json(answer())))
    assert (values["text"], values["neighbors"], values["like"]) == ("kernels", [], None)
    first, second = values["rankings"]
    assert (first["node_type"], first["candidates"], first["index"]) == ("paper", 12345, "exact")
    assert first["hits"][0] == {
        "id": "p1",
        "name": "Kernel methods",
        "score": 12.345678,
        "known": False,
        "neighbors": [
            {"node_type": "author", "id": "a1", "name": "Jane Doe", "score": 0.5},
            {"node_type": "venue", "id": "v1", "name": "v1", "score": 0.25},
        ],
    }
    assert second["hits"] == []
