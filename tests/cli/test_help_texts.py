from __future__ import annotations

from dataclasses import dataclass, field, fields
from itertools import pairwise

import pytest
import tyro

from heterformer.cli import main as cli
from heterformer.cli.help_texts import REGISTRY, help_text
from heterformer.metrics import watchable_metrics
from heterformer.models.options import MODEL_OPTIONS
from heterformer.training.options import TrainingOptions


@dataclass(frozen=True)
class Inner:
    depth: int = 1
    """How deep."""


@dataclass(frozen=True)
class Options:
    """Options of a test."""

    name: str
    """A name, which must be
    given."""
    inner: Inner = field(default_factory=Inner)
    plain: int = 3  # a comment is no help


@dataclass(frozen=True)
class MoreOptions(Options):
    name: str = "x"


def test_a_docstring_of_two_lines_flows() -> None:
    assert help_text(Options, "name") == "A name, which must be given."
    assert help_text(Options, "plain") is None


def test_a_field_that_is_defined_anew_keeps_its_help() -> None:
    assert help_text(MoreOptions, "name") == "A name, which must be given."


def test_values_are_read_as_before() -> None:
    words = ["--name", "a", "--inner.depth", "2"]
    assert tyro.cli(Options, args=words, registry=REGISTRY) == Options("a", Inner(2))
    with_default = tyro.cli(Options, args=["--plain", "5"], default=Options("b"), registry=REGISTRY)
    assert with_default == Options("b", plain=5)
    with pytest.raises(SystemExit):
        tyro.cli(Options, args=[], registry=REGISTRY)  # a name is required


@pytest.mark.parametrize("options", [TrainingOptions, *MODEL_OPTIONS.values()])
def test_every_option_has_help_without_a_line_break(options: type) -> None:
    groups = {"model", "split", "warm_up", "labels"} if options is TrainingOptions else set()
    for option in fields(options):
        text = help_text(options, option.name)
        assert (text is None) is (option.name in groups), option.name
        assert "\n" not in (text or "")


def test_help_names_every_metric_that_early_stopping_can_watch() -> None:
    words = (help_text(TrainingOptions, "watch") or "").replace(",", "").split()
    tasks = ("link_prediction", "classification", "regression")
    assert {name for task in tasks for name in watchable_metrics(task)} <= set(words)


@pytest.mark.parametrize("command", ["train", "compare"])
def test_help_has_no_line_that_ends_before_its_time(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first word of a line of help would not have fitted at the end of the line before."""
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        cli.main([command, "--help"])
    lines = [line.replace("│", " ").rstrip() for line in capsys.readouterr().out.splitlines()]
    inside = [(one, two) for one, two in pairwise(lines) if is_help(one) and is_help(two)]
    width = max(map(len, (line for line in lines if is_help(line))))
    assert len(inside) > 10
    early = [one for one, two in inside if len(one) + 1 + len(two.split()[0]) < width - 1]
    assert early == []


def is_help(line: str) -> bool:
    return line.startswith("      ") and bool(line.strip())
