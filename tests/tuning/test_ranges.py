"""Ranges as they are written, and what is refused."""

from __future__ import annotations

import pytest

from heterformer.errors import InputError
from heterformer.options import fits
from heterformer.training.flat_options import flat_options, option_hints
from heterformer.training.options import TrainingOptions
from heterformer.tuning.options import TuneOptions
from heterformer.tuning.ranges import FIXED, Choices, Numbers, read_ranges

OPTIONS = TrainingOptions()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("learning-rate=1e-5:1e-3:log", Numbers("learning_rate", 1e-5, 1e-3, True, False)),
        ("--batch-size=8:64", Numbers("batch_size", 8, 64, False, True)),
        ("neighbor_dropout=0:0.5", Numbers("neighbor_dropout", 0.0, 0.5, False, False)),
        ("batch_size=16, 32", Choices("batch_size", (16, 32))),
        ("readout=cls,mean", Choices("readout", ("cls", "mean"))),
        ("max_grad_norm=none,1", Choices("max_grad_norm", (None, 1.0))),
        ("split.seed=0,1", Choices("split.seed", (0, 1))),
        ("textless_dim=16:128:log", Numbers("textless_dim", 16, 128, True, True)),
        ("warm-up=true,false", Choices("warm_up", (True, False))),
        ("widths=192 96,48", Choices("widths", ((192, 96), (48,)))),
    ],
)
def test_a_range(text: str, expected: object) -> None:
    assert read_ranges([text], OPTIONS) == [expected]


@pytest.mark.parametrize("name", sorted(option_hints(OPTIONS).keys() - set(FIXED)))
def test_any_option_of_training_can_be_a_range(name: str) -> None:
    value = flat_options(OPTIONS)[name]
    value = "x" if value is None and fits("x", option_hints(OPTIONS)[name]) else value
    text = " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    if text:  # but for an empty list
        assert read_ranges([f"{name}={text}"], OPTIONS) == [Choices(name, (value,))]
    else:
        assert name == "widths"


def test_by_default_the_learning_rates() -> None:
    ranges = read_ranges((), OPTIONS)
    assert [one.name for one in ranges] == ["learning_rate", "new_learning_rate", "textless_learning_rate"]
    assert (ranges[0].low, ranges[0].high) == pytest.approx((2e-6, 2e-4))
    assert (ranges[0].log, ranges[0].whole) == (True, False)
    assert ranges[1].low == pytest.approx(5e-5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("learning_rate", "expected NAME=LOW:HIGH"),
        ("learning_rate=", "expected NAME=LOW:HIGH"),
        ("learning_rat=1:2", "'learning_rat' is no option"),
        ("device=cpu,auto", "'device' is no option"),
        ("batch_size=8.5:9", "a whole number"),
        ("batch_size=9:8", "expected LOW < HIGH"),
        ("learning_rate=0:1:log", "expected 0 < LOW < HIGH"),
        ("learning_rate=1:2:linear", "NAME=LOW:HIGH:log"),
        ("readout=cls:mean", "one of auto, cls, mean"),
    ],
)
def test_what_is_no_range(text: str, message: str) -> None:
    with pytest.raises(InputError, match=f"ranges has .*{message}"):
        read_ranges([text], OPTIONS)


def test_an_option_twice_and_numbers_out_of_range() -> None:
    with pytest.raises(InputError, match="has 'batch_size' twice"):
        read_ranges(["batch_size=1:2", "batch-size=4,8"], OPTIONS)
    with pytest.raises(InputError, match="trials is 0, expected at least 1"):
        TuneOptions(trials=0)
