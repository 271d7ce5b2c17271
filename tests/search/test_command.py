"""``heterformer search`` as a user meets it."""

from __future__ import annotations

import io
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heterformer.cli.main import main
from heterformer.network.lookup import Node
from heterformer.search.searcher import Query, Searcher
from tests.learning import tiny_network
from tests.search.searching import tiny_run

TEXT = "kernel methods for graphs"


@pytest.fixture
def searched(capsys: pytest.CaptureFixture[str]) -> Searched:
    return Searched(capsys)


class Searched:
    """What a search prints."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys

    def __call__(self, *words: object) -> str:
        self.capsys.readouterr()
        main(["search", str(tiny_run()), *map(str, words)])
        return self.capsys.readouterr().out

    def json(self, *words: object) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self(*words, "--json"))
        return found

    def hits(self, *words: object) -> list[dict[str, Any]]:
        """The results of a search for one type."""
        (ranking,) = self.json(*words)["rankings"]
        found: list[dict[str, Any]] = ranking["hits"]
        return found

    def failed(self, *words: object) -> str:
        """The one sentence with which a search fails."""
        self.capsys.readouterr()
        with pytest.raises(SystemExit) as exit_:
            main(["search", str(tiny_run()), *map(str, words)])
        captured = self.capsys.readouterr()
        assert (exit_.value.code, captured.out) == (1, "")
        assert captured.err.startswith("error: ")
        assert captured.err.endswith(".\n")
        assert captured.err.count("\n") == 1
        return captured.err.removeprefix("error: ").rstrip("\n")


def expected(query: Query, node_type: str = "paper", top: int = 10, **options: bool) -> list[str]:
    return [hit.id for hit in Searcher(tiny_run()).rank(query, node_type, top, **options).hits]


def name_of(node_type: str, row: int) -> str:
    return tiny_network().names(node_type, [row])[0]


def test_json_holds_the_ranking(searched: Searched) -> None:
    answer = searched.json(TEXT, "--top", 4)
    (ranking,) = answer["rankings"]
    assert (answer["text"], answer["neighbors"], answer["like"]) == (TEXT, [], None)
    assert (ranking["node_type"], ranking["candidates"], ranking["index"]) == ("paper", 200, "exact")
    assert [hit["id"] for hit in ranking["hits"]] == expected(Searcher(tiny_run()).text(TEXT), top=4)
    assert [hit["score"] for hit in ranking["hits"]] == sorted(
        (hit["score"] for hit in ranking["hits"]), reverse=True
    )
    supporting = ranking["hits"][0]["neighbors"][0]
    (row,) = tiny_network().rows(supporting["node_type"], [supporting["id"]])
    assert supporting["name"] == name_of(supporting["node_type"], row)


def test_many_queries_with_one_start(
    searched: Searched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a file or from a person, each line is a query of its own; the run is opened once."""
    lines = [TEXT, "galaxies"]
    alone = [searched.json(line, "--top", 3) for line in lines]
    opened = []
    monkeypatch.setattr(Searcher, "__init__", counted(Searcher.__init__, opened))
    file = tmp_path / "queries.txt"
    file.write_text(f"{lines[0]}\n\n  {lines[1]}\n", encoding="utf-8")
    from_file = searched("--queries", file, "--top", 3, "--json")
    assert [json.loads(line) for line in from_file.splitlines()] == alone
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join([*lines, "", "after an empty line"])))
    assert searched("--interactive", "--top", 3, "--json") == from_file
    assert f"paper nodes for {lines[1]!r}" in " ".join(searched("--queries", file).split())
    assert len(opened) == 3


def counted(method: Callable[..., None], calls: list[None]) -> Callable[..., None]:
    def count(*arguments: Any, **more: Any) -> None:
        calls.append(None)
        method(*arguments, **more)

    return count


def test_a_table_shows_names_and_neighbours(searched: Searched) -> None:
    hit = searched.hits(TEXT, "--top", 1)[0]
    shown = " ".join(searched(TEXT, "--top", 1).split())
    assert f"paper nodes for {TEXT!r}" in shown
    assert f"{hit['score']:#.4g}" in shown
    assert hit["name"].split()[0] in shown
    assert hit["id"] in shown
    assert f"{hit['neighbors'][0]['node_type']}:" in shown
    assert "exact search among 200 nodes" in shown


def test_neighbours_given_by_flags_are_those_of_the_query(searched: Searched) -> None:
    given = [Node("author", 2), Node("venue", 1), Node("paper", 9)]
    authors, venue, paper = name_of("author", 2), name_of("venue", 1), tiny_network().ids("paper", [9])[0]
    query = Searcher(tiny_run()).text(TEXT, given)
    flags = ["--author", authors, f"--venue={venue}", "--paper", paper]
    assert [hit["id"] for hit in searched.hits(TEXT, *flags)] == expected(query)
    written_out = ["--with", f"author={authors}", "--with", f"venue={venue}", "--with", f"paper={paper}"]
    assert searched.json(TEXT, *written_out) == searched.json(TEXT, *flags)
    assert expected(query) != expected(Searcher(tiny_run()).text(TEXT))
    told = searched.json(TEXT, *flags)["neighbors"]
    assert [(n["node_type"], n["name"]) for n in told[:2]] == [("author", authors), ("venue", venue)]
    assert (told[2]["node_type"], told[2]["id"]) == ("paper", paper)


def test_neighbours_alone(searched: Searched) -> None:
    query = Searcher(tiny_run()).text("", [Node("author", 2)])
    assert [hit["id"] for hit in searched.hits("--author", name_of("author", 2))] == expected(query)


@pytest.mark.parametrize(
    ("asking", "node_type", "flags"),
    [
        ("paper", "paper", []),
        ("author", "paper", []),  # papers for an author
        ("paper", "author", ["--type", "author"]),  # authors for a paper
        ("venue", "author", ["--type", "author"]),
    ],
)
def test_more_like_a_node(asking: str, node_type: str, flags: list[str], searched: Searched) -> None:
    (own,) = tiny_network().ids(asking, [4])
    query = Searcher(tiny_run()).like(Node(asking, 4))
    assert searched.json("--like", own, "--like-type", asking)["like"] == {
        "node_type": asking,
        "id": own,
        "name": name_of(asking, 4),
    }
    found = searched.hits("--like", own, "--like-type", asking, *flags)
    assert [hit["id"] for hit in found] == expected(query, node_type)
    rest = searched.hits("--like", own, "--like-type", asking, *flags, "--exclude-known")
    assert [hit["id"] for hit in rest] == expected(query, node_type, exclude_known=True)
    assert not any(hit["known"] for hit in rest)


def test_several_types_are_several_rankings(searched: Searched) -> None:
    answer = searched.json(TEXT, "--type", "venue", "--type", "author", "--top", 3)
    assert [(r["node_type"], len(r["hits"])) for r in answer["rankings"]] == [("venue", 3), ("author", 3)]
    shown = searched(TEXT, "--type", "venue", "--type", "author")
    assert shown.index("venue nodes for") < shown.index("author nodes for")


def test_other_vectors(searched: Searched, tmp_path: Path) -> None:
    vectors = shutil.copytree(Searcher(tiny_run()).store.vectors.path, tmp_path / "vectors")
    matrix = np.load(vectors / "paper.npy")
    np.save(vectors / "paper.npy", -matrix)
    best = expected(Searcher(tiny_run()).text(TEXT), top=200)
    assert [hit["id"] for hit in searched.hits(TEXT, "--vectors", vectors, "--top", 5)] == best[:-6:-1]


MISTAKES: list[tuple[list[str], str]] = [
    ([], "there is nothing to search for: give a query text, a node or neighbours."),
    (["  "], "there is nothing to search for: give a query text, a node or neighbours."),
    (["text", "--like", "x"], "--like searches with a node; leave out the query text and --with."),
    (
        ["--like", "x", "--venue", "y"],
        "--like searches with a node; leave out the query text and --with.",
    ),
    (["text", "--like-type", "x"], "--like-type is the type of the node --like; give --like as well."),
    (
        ["text", "--type", "autor"],
        "--type is 'autor', expected one of 'paper', 'author', 'venue'.",
    ),
    (
        ["--like", "x", "--like-type", "autor"],
        "--like-type is 'autor', expected one of 'paper', 'author', 'venue'.",
    ),
    (
        ["text", "--autor", "x"],
        "--with has 'autor=x', but 'autor' is no node type; expected one of 'paper', 'author', 'venue'.",
    ),
    (["text", "--with", "x"], "--with has 'x', expected TYPE=NAME, such as 'author=Jane Doe'."),
    (["text", "--top", "0"], "--top is 0, expected at least 1."),
    (
        ["text", "--jsn"],
        "'heterformer search' has no option --jsn (did you mean --json?), and as a node type it "
        "needs a name.",
    ),
]


@pytest.mark.parametrize(("words", "said"), MISTAKES, ids=[" ".join(words) for words, _ in MISTAKES])
def test_a_mistake_is_one_sentence(words: list[str], said: str, searched: Searched) -> None:
    assert searched.failed(*words) == said


def test_a_name_that_nobody_has(searched: Searched) -> None:
    said = searched.failed(TEXT, "--author", "Qwertz Uiop")
    assert said == f"{tiny_network().path}: there is no author with the id or name 'Qwertz Uiop'."
    assert "there is no paper, author or venue with the id or name 'qq'" in searched.failed("--like", "qq")


def test_what_is_no_run_or_no_vectors(searched: Searched, tmp_path: Path) -> None:
    assert "holds no vectors, expected" in searched.failed(TEXT, "--vectors", tmp_path)
    with pytest.raises(SystemExit):
        main(["search", str(tmp_path), TEXT])
    said = searched.capsys.readouterr().err
    assert said == f"error: {tmp_path}: not a run, expected a folder that 'heterformer train' wrote.\n"


def test_a_mistake_in_the_question_costs_no_vectors(
    searched: Searched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("heterformer.search.searcher.SearchStore", None)
    searched.failed(TEXT, "--author", "Qwertz Uiop")
    searched.failed("--like", "qq")
    searched.failed(TEXT, "--type", "qq")


def test_help_explains_neighbours_by_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["search", "--help"])
    shown = capsys.readouterr().out
    assert 'heterformer search RUN "personalised news" --author "Jane Doe" --venue ACL' in shown
    assert "--with TYPE=NAME" in shown
