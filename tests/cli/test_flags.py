"""Flags in messages are those that a user would type, and words that are read before tyro reads them."""

from __future__ import annotations

import re

import pytest
import tyro

from heterformer.cli.flags import in_flags, value_of, with_defaults, with_neighbor_flags
from heterformer.cli.main import main
from heterformer.errors import InputError, OptionError
from heterformer.network.label_options import LabelOptions
from heterformer.search.options import SearchOptions
from tests.failing import Failed


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("evaluate run --labels.min-members 0", "--labels.min-members is 0, expected at least 1."),
        ("evaluate run --labels.top-classes 1", "--labels.top-classes is 1, expected at least 2 or None."),
        ("evaluate run --classification.repeats 0", "--classification.repeats is 0, expected more than 0."),
        ("evaluate run --clustering.runs 0", "--clustering.runs is 0, expected at least 1."),
        ("evaluate run --map.perplexity nan", "--map.perplexity is nan, expected a number."),
        (
            "evaluate run --map.seed 3 --clustering.seed -1",
            "--clustering.seed is -1, expected 0 to 2,147,483,647.",
        ),
        (
            "train net run --seed 3 --split.seed -1",
            "--split.seed is -1, expected 0 to 9,223,372,036,854,775,807.",
        ),
        (
            "train net run --split.seed 3 --seed -1",
            "--seed is -1, expected 0 to 9,223,372,036,854,775,807.",
        ),
        ("train net run --textless_dim=0", "--textless-dim is 0, expected a positive whole number."),
        ("train net run --warm-up-epochs 0", "--warm-up-epochs is 0, expected more than 0."),
        (
            "train net run --neighbor-states live --refresh-every 5",
            "--refresh-every is 5, but --neighbor-states is live; only cached states are refreshed.",
        ),
        ("plan net --embed.all-neighbors 0", "--embed.all-neighbors is 0, expected at least 1 or None."),
        ("plan net --scale 0", "--scale is 0.0, expected more than 0."),
        ("embed run out --all-neighbors 0", "--all-neighbors is 0, expected at least 1 or None."),
        ("search run query --top 0", "--top is 0, expected at least 1."),
        (
            "train net run --seed " + "9" * 40,
            f"--seed is {'9' * 40}, expected 0 to 9,223,372,036,854,775,807.",
        ),
        ("train net run --seed " + "9" * 400, f"--seed is '{'9' * 80}…', expected at most 80 characters."),
        (
            "train net run --learning-rate=" + "x" * 90,
            f"--learning-rate is '{'x' * 80}…', expected at most 80 characters.",
        ),
        ("train net run --" + "x" * 400, f"'heterformer train' has no option --{'x' * 78}…."),
        ("embed run out --since=", "--since is empty, expected a path."),
        (
            "evaluate run --classification.hidden 100001",
            "--classification.hidden is 100001, expected at most 100,000.",
        ),
        ("describe net\udcff", "found 'net\\udcff', which is not UTF-8, expected text in UTF-8."),
        ("synth out --papers 1", "--papers is 1, expected a value from 200 to 5000000."),
        ("map run --perplexity nan", "--perplexity is nan, expected a number."),
        (
            "split net out --train 2",
            "--train is 2.0 and --validation 0.1, expected positive shares that leave some for the test.",
        ),
        (
            "train net run --split.hold-out-with author",
            "--split.hold-out-with needs --split.hold-out, the share of query nodes to hide.",
        ),
        (
            "compare net out --split.seed -1",
            "--split.seed is -1, expected 0 to 9,223,372,036,854,775,807.",
        ),
        ("split net out --seed -1", "--seed is -1, expected 0 to 9,223,372,036,854,775,807."),
    ],
)
def test_a_mistake_in_a_group_of_options_is_one_sentence(typed: str, expected: str, failed: Failed) -> None:
    assert failed(main, typed.split()) == expected


def test_a_sentence_without_a_command_has_plain_flags() -> None:
    assert in_flags(OptionError(None, "max_steps", "is 0."), None) == "--max-steps is 0."
    assert in_flags(OptionError(LabelOptions, "min_members", "is 0."), None) == "--min-members is 0."


def test_values_in_braces_are_no_fields() -> None:
    error = OptionError(LabelOptions, "label", "is '{seed}', expected {textless}.")
    assert str(error) == "label is '{seed}', expected textless."
    assert in_flags(error, None) == "--label is '{seed}', expected --textless."


def test_a_sentence_may_begin_with_a_place_and_name_several_fields() -> None:
    error = OptionError(None, ["seed", "split.seed"], "changed.", place="run: cannot resume with ")
    assert str(error) == "run: cannot resume with seed, split.seed changed."
    assert in_flags(error, None) == "run: cannot resume with --seed, --split.seed changed."


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ("", None),
        ("--config a", "a"),
        ("--config=a", "a"),
        ("--config a --config b", "b"),
        ("--config", None),
    ],
)
def test_the_last_value_of_a_flag_counts(words: str, value: str | None) -> None:
    assert value_of(words.split(), "config") == value


def test_a_command_with_another_default() -> None:
    def double(number: int, *, factor: int = 2) -> int:
        return number * factor

    assert tyro.cli(with_defaults(double, factor=3), args=["--number", "5"]) == 15
    assert tyro.cli(with_defaults(double, factor=3), args=["--number", "5", "--factor", "4"]) == 20


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


def test_a_flag_at_the_end() -> None:
    with pytest.raises(InputError) as caught:
        with_neighbor_flags(["search", "RUN", "--jsn"])
    assert str(caught.value) == (
        "'heterformer search' has no option --jsn (did you mean --json?), and as a node type it needs a name."
    )


def test_only_search_takes_node_types_as_flags(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["train", "NET", "RUN", "--author", "Jane"])
    assert caught.value.code == 1
    assert "--author" in capsys.readouterr().err
