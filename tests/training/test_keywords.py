"""Options of ``train`` and ``compare`` as keywords."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from heterformer.errors import InputError
from heterformer.training.keywords import training_options
from heterformer.training.options import TrainingOptions
from heterformer.training.train import train
from tests.learning import tiny_network, tiny_reader

SMALL: dict[str, Any] = {"max_steps": 2, "textless_dim": 8, "warm_up_epochs": 1, "device": "cpu"}


def test_keywords_reach_every_group_of_options(tmp_path: Path) -> None:
    keywords = SMALL | {"backbone": tiny_reader(), "split": {"hold_out": 0.1}, "batch_size": 8}
    run = train(tiny_network(), tmp_path, **keywords)
    options = run.options()
    assert (options.max_steps, options.batch_size) == (2, 8)
    assert options.model.textless_dim == 8  # type: ignore[attr-defined]
    assert options.split.hold_out == 0.1
    assert options.warm_up.warm_up_epochs == 1
    assert run.is_complete


def test_a_model_by_its_name(tmp_path: Path) -> None:
    run = train(tiny_network(), tmp_path, model="bert", backbone=tiny_reader(), max_steps=2, device="cpu")
    assert type(run.model()).__name__ == "Bert"


def test_no_keywords_are_the_defaults() -> None:
    assert training_options(None, {}) == TrainingOptions()


@pytest.mark.parametrize(
    ("keywords", "expected"),
    [
        ({"max_step": 3}, "no option 'max_step' (did you mean 'max_steps'?)"),
        ({"xyzzy": 3}, "no option 'xyzzy'."),
        ({"batch_size": 1}, "batch_size is 1, expected more than 1."),
        ({"warm_up_epochs": 0}, "warm_up_epochs is 0, expected more than 0."),
    ],
)
def test_a_keyword_that_does_not_fit(keywords: dict[str, Any], expected: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        train(tiny_network(), tmp_path / "run", **keywords)
    assert expected in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_options_and_keywords_at_once_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        train(tiny_network(), tmp_path / "run", TrainingOptions(), max_steps=3)
    assert str(caught.value) == "found options and the keywords max_steps, expected one or the other."
