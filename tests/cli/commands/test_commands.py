"""What all commands have in common; what each does is tested with its feature."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import docstring_parser
import pytest

from heterformer.cli.commands import COMMANDS, DISTRIBUTED
from heterformer.cli.main import main


@pytest.mark.parametrize("name", COMMANDS)
def test_help_explains_every_argument(name: str) -> None:
    command: Callable[..., Any] = COMMANDS[name]
    help_text = docstring_parser.parse(command.__doc__ or "")
    assert help_text.short_description
    explained = {argument.arg_name for argument in help_text.params if argument.description}
    assert explained == set(inspect.signature(command).parameters)


def test_several_processes_run_commands_that_exist() -> None:
    assert set(DISTRIBUTED) <= set(COMMANDS)


@pytest.mark.parametrize(
    ("model", "shown", "hidden"),
    [
        ("heterformer", {"neighbor-states", "neighbor-dropout", "warm-up-epochs", "textless-dim"}, set()),
        ("bert_hgt", {"neighbor-states", "warm-up-epochs", "textless-dim"}, {"neighbor-pooling"}),
        ("bert_gat", {"neighbor-states", "neighbor-dropout"}, {"warm-up-epochs", "textless-learning-rate"}),
        (
            "mean_sage",
            {"neighbor-dropout", "vocabulary", "textless-learning-rate"},
            {"neighbor-states", "hard-negatives", "warm-up"},
        ),
        ("bert", {"batch-size"}, {"neighbor-states", "neighbor-dropout", "warm-up", "warm-up-epochs"}),
    ],
)
@pytest.mark.parametrize("command", ["train", "plan"])
def test_help_of_a_model_has_its_options_alone(
    command: str, model: str, shown: set[str], hidden: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([command, "--model", model, "--help"])
    words = {word.strip("│,|") for word in capsys.readouterr().out.split()}
    assert {f"--{name}" for name in shown} <= words
    assert not {f"--{name}" for name in hidden} & words


def test_an_option_that_a_model_does_not_use_is_accepted(capsys: pytest.CaptureFixture[str]) -> None:
    """One command line serves several models."""
    with pytest.raises(SystemExit):
        main(["train", "no.net", "no-run", "--model", "bert", "--neighbor-states", "cached"])
    assert "no.net" in capsys.readouterr().err
