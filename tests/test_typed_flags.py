"""Flags in messages are those that were typed."""

from __future__ import annotations

import pytest

from heterformer.cli.main import main
from heterformer.typed_flags import as_typed
from tests.failing import Failed


@pytest.mark.parametrize(
    ("message", "typed", "expected"),
    [
        ("--repeats is 0.", "evaluate run --classification.repeats 0", "--classification.repeats is 0."),
        ("--repeats is 0.", "evaluate run --classification.repeats=0", "--classification.repeats is 0."),
        ("--max-nodes is 0.", "evaluate run --map.max_nodes 0", "--map.max-nodes is 0."),
        ("--max-nodes is 0.", "map run --max-nodes 0", "--max-nodes is 0."),
        ("--seed is -1.", "evaluate run --map.seed 3 --clustering.seed -1", "--clustering.seed is -1."),
        ("--seed is -1.", "train net run --seed 3 --split.seed -1", "--split.seed is -1."),
        ("--seed is -1.", "train net run --split.seed 3 --seed -1", "--seed is -1."),
        ("--a-b needs --a, c.", "train net run --split.a-b author", "--split.a-b needs --split.a, c."),
        ("choose --labels.x or --y.", "evaluate run --labels.y 1", "choose --labels.x or --labels.y."),
        ("paper--x: no --flag at all.", "evaluate run --map.x 1", "paper--x: no --flag at all."),
    ],
)
def test_a_message_names_the_flag_that_was_typed(message: str, typed: str, expected: str) -> None:
    assert as_typed(message, typed.split()) == expected


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("evaluate run --labels.min-members 0", "--labels.min-members is 0, expected at least 1."),
        ("evaluate run --labels.top-classes 1", "--labels.top-classes is 1, expected at least 2."),
        ("evaluate run --classification.repeats 0", "--classification.repeats is 0, expected more than 0."),
        ("evaluate run --clustering.runs 0", "--clustering.runs is 0, expected at least 1."),
        ("evaluate run --map.perplexity nan", "--map.perplexity is nan, expected at least 1."),
        ("map run --perplexity nan", "--perplexity is nan, expected at least 1."),
        (
            "train net run --split.hold-out-with author",
            "--split.hold-out-with needs --split.hold-out, the share of query nodes to hide.",
        ),
        ("compare net out --split.seed -1", "--split.seed is -1, expected 0 or more."),
        ("split net out --seed -1", "--seed is -1, expected 0 or more."),
    ],
)
def test_a_mistake_in_a_group_of_options_is_one_sentence(typed: str, expected: str, failed: Failed) -> None:
    assert failed(main, typed.split()) == expected
