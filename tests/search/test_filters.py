"""The grammar of filters: what they keep, and what they say of mistakes."""

from __future__ import annotations

import builtins
import random
import re
from functools import cache
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from heterformer.errors import InputError
from heterformer.network.store import Network
from heterformer.search.filters import KEYWORDS, MAX_DEPTH, MAX_LENGTH, check_filter, matching_rows

PAPERS = {
    "id": ["p1", "p2", "p3", "p4", "7"],
    "title": ["neural nets", "it's a trap", "kernel methods", "", "graph nets"],
    "field": [["ml", "nlp"], ["nlp"], [], ["1"], ["ml"]],
    "when": ["2014", "2015", None, "2020", "2021"],
    "year": ["2014", " 2015", "nan", None, "9"],
    "venue": ["ACL", "ACL", "O'Hara", "", "EMNLP"],
    "name": ["a", "b", "c", "d", "e"],
    "two words": ["x", "x", "y", "y", "y"],
    "cites": [["p2"], ["p3"], ["p4"], ["7"], ["p1"]],
}


@cache
def papers() -> Network:
    spec = {
        "nodes": {
            "paper": {
                "text": "title",
                "label": "field",
                "time": "when",
                "keep": ["year", "venue", "name", "two words"],
            }
        },
        "relations": {"cites": {"from": "paper", "to": "paper", "column": "cites"}},
        "predict": "cites",
    }
    return Network.from_frames(spec, {"paper": pl.DataFrame(PAPERS)})


def met(where: str) -> list[int]:
    """The numbers of the papers that meet a filter, from 1."""
    found: list[int] = (matching_rows(papers(), "paper", where) + 1).tolist()
    return found


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("year >= 2015", [2]),
        ("year < 2015", [1, 5]),
        ("year = 9.0", [5]),
        ("year == '9'", [5]),
        ("year > '2014'", [3, 5]),  # strings are compared as strings
        ("year != 9", [1, 2]),  # 'nan' is no number, and a missing value is not unequal
        ("time >= 2015 and time <= 2020", [2, 4]),
        ("time is null", [3]),
        ("time != null", [1, 2, 4, 5]),
        ("venue == 'ACL'", [1, 2]),
        ('venue = "O\'Hara"', [3]),
        (r"venue == 'O\'Hara'", [3]),
        ("venue is null", [4]),
        ("venue == ''", [4]),
        ("venue is not null", [1, 2, 3, 5]),
        ("venue != 'ACL'", [3, 5]),
        ("not venue == 'ACL'", [3, 5]),
        ("venue in ('ACL', 'EMNLP')", [1, 2, 5]),
        ("venue not in ('ACL', null)", [3, 5]),
        ("venue contains 'L'", [1, 2, 5]),
        ("venue startswith 'E'", [5]),
        ("venue not startswith 'E'", [1, 2, 3]),
        ("venue contains '.*'", []),
        ("label == 'ml'", [1, 5]),
        ("label != 'ml'", [2, 4]),
        ("label == 1", [4]),
        ("label in ('nlp', 1)", [1, 2, 4]),
        ("label is null", [3]),
        ("label startswith 'n'", [1, 2]),
        ("id == 7", [5]),
        ("id in ('p1', 'p3')", [1, 3]),
        ("name contains 'nets'", [1, 5]),
        ("name == 'p4'", [4]),
        ("attribute.name == 'd'", [4]),
        ("text contains 'trap'", [2]),
        ("`two words` == 'x'", [1, 2]),
        ("venue == 'ACL' or venue == 'EMNLP' and year == 9", [1, 2, 5]),
        ("(venue == 'ACL' or venue == 'EMNLP') and year == 9", [5]),
        ("NOT (venue == 'ACL' OR venue IS NULL)", [3, 5]),
        ("\n year\t>=2015 ", [2]),
    ],
)
def test_what_a_filter_keeps(where: str, expected: list[int]) -> None:
    assert met(where) == expected


@pytest.mark.parametrize(
    ("where", "sentence"),
    [
        ("", "position 1: found the end, expected the name of a column."),
        ("year", "position 5: found the end, expected a comparison such as"),
        ("year >=", "position 8: found the end, expected a string in quotes, a number or null."),
        ("year >= x", "position 9: found 'x', expected a string in quotes, a number or null."),
        (
            "years > 3",
            "position 1: paper nodes have no column 'years', "
            "only id, name, text, label, time, year, venue, attribute.name, two words.",
        ),
        ("year > 3 4", "position 10: found '4', expected 'and', 'or' or the end."),
        ("(year > 3", "position 10: found the end, expected ')' after '('."),
        ("year > 'a", "position 8: the quote is not closed."),
        ("year ; 3", "position 6: cannot read '; 3'."),
        ("year in 3", "position 9: found '3', expected '(' after 'in'."),
        ("year < null", "position 8: a missing value cannot be compared by <"),
        ("time == 'May'", "position 9: time is a number, found the string 'May'."),
        ("id == 12345678901234567890", "position 7: the number 12345678901234567890 is too large to compare"),
        ("year == 1e999", "position 9: the number 1e999 is too large"),
        ("venue contains 3", "position 16: found '3', expected a string in quotes after 'contains'."),
        ("__import__('os').system('x')", "position 17: cannot read"),
        ("__import__ == 3", "position 1: paper nodes have no column '__import__', only"),
        ("__import__('os')", "position 1: paper nodes have no column '__import__', only"),
    ],
)
def test_a_mistake_is_one_sentence_with_its_position(where: str, sentence: str) -> None:
    with pytest.raises(InputError) as error:
        met(where)
    assert str(error.value).startswith(f"the filter, {sentence}")
    assert str(error.value).endswith(".")
    assert "\n" not in str(error.value)


def test_a_filter_is_bounded() -> None:
    with pytest.raises(InputError, match=r"^the filter has 2,001 characters, expected at most 2,000\.$"):
        met("x" * (MAX_LENGTH + 1))
    with pytest.raises(InputError, match=r"position 33: more than 32 parentheses and nots"):
        met("(" * 500 + "year > 3" + ")" * 500)
    with pytest.raises(InputError, match="more than 32"):
        met("not " * 300 + "year > 3")
    deep = MAX_DEPTH - 1
    assert met("(" * deep + "year > 3" + ")" * deep) == met("year > 3")
    assert met(" or ".join(["year>3"] * 180)) == met("year > 3")


PIECES = [
    *(*KEYWORDS, "year", "venue", "time", "label", "`two words`", "id", "nope", "attribute.name"),
    *("==", "!=", "<", ">=", "=", "(", ")", ",", "3", "-1e5", "1e400", "''", "'a'", '"', "'", "`", "\\", ";"),
    *("__import__('os')", "eval(", "lambda: 0", "{0.__class__}", "pl.col('x')", "$(id)", "`id`", "--", "/*"),
    *("\x00", "\n", "\u202e", "é", "数", "🙂", "%s", "%n", "../..", "' or 1=1 --", "select", "NULL"),
]


def problem_of(where: str) -> str:
    try:
        check_filter(where)
        met(where)
    except InputError as error:
        return str(error)
    return ""


def test_a_thousand_hostile_strings_give_rows_or_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a filter was evaluated")

    rng, wrong = random.Random(0), 0
    hostile = [
        "".join(rng.choice(PIECES) + rng.choice(["", " "]) for _ in range(rng.randint(1, 12)))
        for _ in range(1000)
    ]
    met("year > 3")  # polars imports some of itself on first use
    for name in ("eval", "exec", "compile"):
        monkeypatch.setattr(builtins, name, refuse)
    for where in hostile:
        problem = problem_of(where)
        if problem:
            wrong += 1
            assert re.match(r"the filter(, position \d+:| has)", problem), where
            assert problem.endswith("."), where
            assert len(problem) < 400
    monkeypatch.undo()
    assert wrong > 900


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.text(max_size=60) | st.lists(st.sampled_from(PIECES), max_size=14).map(" ".join))
def test_any_string_is_a_filter_or_a_mistake(where: str) -> None:
    problem = problem_of(where)
    assert not problem or problem.startswith("the filter")


def test_a_filter_reads_only_the_columns_it_names(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the names were read")

    monkeypatch.setattr(Network, "name_series", refuse)
    assert met("id == 'p1'") == [1]


def test_no_file_is_read_for_a_filter_that_is_wrong_anyway(tmp_path: Path) -> None:
    from heterformer.search.searcher import Searcher

    searcher = object.__new__(Searcher)  # nothing is opened
    searcher.network = None  # type: ignore[assignment]
    with pytest.raises(InputError, match=r"^the filter, position 6: found the end"):
        searcher.search("text", where="year ")
