"""Errors of options name fields; the command line alone spells flags."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import heterformer
from heterformer.errors import InputError, OptionError

ROOT = Path(heterformer.__file__).parent
FLAG = re.compile(r"(?<![-\w])--[a-z]")
# Commands of other programs, to be typed as they are.
OTHER_PROGRAM = re.compile(r"^ *embedding-atlas |pip install ", re.MULTILINE)


@dataclass(frozen=True)
class Options:
    top: int = 10
    like: str = ""


def test_a_field_with_its_value() -> None:
    assert (
        str(OptionError(Options(), "top", "is 0, expected at least 1.")) == "top is 0, expected at least 1."
    )
    assert (
        str(OptionError(Options, ["top", "like"], "do not go together.")) == "top, like do not go together."
    )


def test_a_sentence_that_begins_with_no_field() -> None:
    error = OptionError(Options, (), "nothing to search for: give {like}.", place="run: ")
    assert str(error) == "run: nothing to search for: give like."
    assert error.worded(lambda field: f"--{field}") == "run: nothing to search for: give --like."


def test_what_looks_like_a_field_of_others_is_left_alone() -> None:
    error = OptionError(Options, "like", "is '{other}', expected another.")
    assert error.worded(str.upper) == "LIKE is '{other}', expected another."


def sentences(source: str) -> Iterator[str]:
    """All strings of a module, its docstrings and the help texts of options among them."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


MODULES = [path for path in sorted(ROOT.rglob("*.py")) if path.relative_to(ROOT).parts[0] != "cli"]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_only_the_command_line_spells_flags(path: Path) -> None:
    assert flags(path.read_text(encoding="utf-8")) == []


def flags(source: str) -> list[str]:
    return [s for s in sentences(source) if FLAG.search(s) and not OTHER_PROGRAM.search(s)]


def test_a_flag_is_found() -> None:
    assert flags('raise E(f"{x}: use --device cpu")') == [": use --device cpu"]
    assert flags('"""Like --this."""\nx = "run \'heterformer embed RUN OUT --h0\'"') == [
        "Like --this.",
        "run 'heterformer embed RUN OUT --h0'",
    ]
    assert flags('"""Try this:\n\n    embedding-atlas x.parquet --text name\n"""') == []


LONG = "x" * 200


@pytest.mark.parametrize(
    ("sentence", "shown"),
    [
        (f"t.csv: found {LONG!r}, expected 'a'.", f"t.csv: found '{'x' * 80}…', expected 'a'."),
        (f"t.csv: found {LONG + chr(39)!r}.", f't.csv: found "{"x" * 80}…".'),
        (f"the run's seed is {'7' * 400}, expected less.", f"the run's seed is {'7' * 80}…, expected less."),
        (f"'a.' is not in the list, whose {LONG}", f"'a.' is not in the list, whose {LONG}"),
        (f"{LONG}.net: not a network.", f"{LONG}.net: not a network."),
        (f"{LONG}{LONG}: no such file.", f"{'x' * 80}…: no such file."),
        (f"run 'heterformer build {LONG}'.", f"run 'heterformer build {LONG}'."),
        (f"found {'x' * 80!r}.", f"found {'x' * 80!r}."),
    ],
)
def test_a_value_that_an_error_repeats_is_cut(sentence: str, shown: str) -> None:
    assert str(InputError(sentence)) == shown


def test_a_value_of_an_option_is_cut() -> None:
    error = OptionError(Options, "like", f"is {LONG!r}, expected an id.")
    assert str(error) == f"like is '{'x' * 80}…', expected an id."
    assert error.worded(str.upper) == f"LIKE is '{'x' * 80}…', expected an id."
