from __future__ import annotations

import re

import pytest
import tyro

from heterformer.errors import InputError
from heterformer.search.options import SearchOptions, with_neighbor_flags


@pytest.mark.parametrize(
    ("given", "written_out"),
    [
        ("search RUN query", "search RUN query"),
        ("search RUN query --author Jane", "search RUN query --with author=Jane"),
        (
            "search --author=Jane RUN query --venue ACL",
            "search --with author=Jane RUN query --with venue=ACL",
        ),
        ("search RUN --author a=b --author -x", "search RUN --with author=a=b --with author=-x"),
        ("search RUN --sub-reddit r", "search RUN --with sub-reddit=r"),
        ("search RUN --with author=Jane --top 3", "search RUN --with author=Jane --top 3"),
        ("search RUN --like_type author --no-json", "search RUN --like_type author --no-json"),
        ("search --help", "search --help"),
        ("search RUN -h", "search RUN -h"),
        ("train NET RUN --author Jane", "train NET RUN --author Jane"),
        ("", ""),
    ],
)
def test_flags_of_node_types_are_written_out(given: str, written_out: str) -> None:
    assert with_neighbor_flags(given.split()) == written_out.split()


def test_a_name_of_several_words_stays_one() -> None:
    assert with_neighbor_flags(["search", "RUN", "--author", "Jane Doe"])[-1] == "author=Jane Doe"


def test_every_option_is_known_to_be_one(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        tyro.cli(SearchOptions, args=["--help"])
    flags = set(re.findall(r"--[a-z][a-z-]*", capsys.readouterr().out)) - {"--author"}
    assert {"--with", "--type", "--like-type", "--exclude-known", "--no-json"} <= flags
    for flag in flags:
        assert with_neighbor_flags(["search", flag, "x"]) == ["search", flag, "x"]


def test_options_can_be_repeated() -> None:
    found = tyro.cli(SearchOptions, args=["--with", "a=b c", "--with", "d=e", "--type", "f", "--type", "g"])
    assert (found.neighbors, found.types) == (("a=b c", "d=e"), ("f", "g"))


def test_a_flag_at_the_end() -> None:
    with pytest.raises(InputError) as caught:
        with_neighbor_flags(["search", "RUN", "--jsn"])
    assert str(caught.value) == (
        "'heterformer search' has no option --jsn, and as a node type it needs a name."
    )


def test_no_results_wanted() -> None:
    with pytest.raises(InputError, match=r"^--top is 0, expected at least 1\.$"):
        SearchOptions(top=0)
