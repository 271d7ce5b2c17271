"""Whether a value fits an option, and how a text or YAML value is read as one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import pytest

from heterformer.errors import InputError, OptionError
from heterformer.network.split.options import SplitOptions
from heterformer.options import (
    MAX_SEED,
    check_above,
    check_at_least,
    check_seed,
    expected,
    fits,
    option_types,
    read_value,
    with_keywords,
)
from heterformer.training.options import TrainingOptions

Auto = int | Literal["auto"] | None


@dataclass(frozen=True)
class Options:
    rate: Annotated[float, "for the command line"] = 0.1
    every: Auto = None


def test_types_are_without_annotations() -> None:
    assert option_types(Options) == {"rate": float, "every": Auto}


@pytest.mark.parametrize(
    ("value", "hint", "fitting"),
    [
        (1, int, True),
        (True, int, False),  # although Python counts it as one
        (1, bool, False),
        (1, float, True),
        (1.5, int, False),
        (None, int, False),
        (None, Auto, True),
        ("auto", Auto, True),
        ("often", Auto, False),
        ("often", str, True),
        ([1, 2], tuple[int, ...], True),
        ((1, "two"), tuple[int, ...], False),
        (1, tuple[int, ...], False),
        (float("nan"), float, False),
        (float("inf"), float, True),
    ],
)
def test_fits(value: object, hint: Any, fitting: bool) -> None:
    assert fits(value, hint) is fitting


def test_what_is_expected_in_words() -> None:
    assert expected(Literal["a", "b"]) == "one of a, b"
    assert expected(Auto) == "a whole number, 'auto' or None"
    assert expected(bool) == "true or false"
    assert expected(int | None) == "a whole number or None"
    assert expected(Literal["a", "b"] | None) == "one of a, b or None"


@pytest.mark.parametrize(
    ("value", "hint", "found"),
    [
        ("1e-5", float, 1e-5),  # YAML reads it as a text
        (2, float, 2.0),
        ("7", Auto, 7),
        ("none", Auto, None),
        (True, Literal["yes", "no"], "yes"),  # YAML's yes
        (5, str, "5"),
        (["7", 3], tuple[int, ...], (7, 3)),
        ("true", bool, True),
        ("False", bool | None, False),
    ],
)
def test_values_of_yaml(value: object, hint: Any, found: Any) -> None:
    read = read_value(value, hint)
    assert (read, type(read)) == (found, type(found))


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ("many", int),
        ("maybe", bool),
        (5, tuple[int, ...]),
        (1.5, int),
        ("maybe", Literal["yes"]),
        (None, int),
        ("nan", float),
    ],
)
def test_a_value_that_does_not_fit(value: object, hint: Any) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        read_value(value, hint)


@dataclass(frozen=True)
class Seeded:
    seed: int = 0


@pytest.mark.parametrize("seed", [0, 7, MAX_SEED])
def test_seeds(seed: int) -> None:
    options = Seeded(seed)
    check_seed(options)
    assert np.random.RandomState(options.seed + 1).rand() < 1  # the pickiest generator takes it


def test_a_training_may_have_a_large_seed() -> None:
    assert TrainingOptions(seed=2**40, split=SplitOptions(seed=2**50)).seed == 2**40
    with pytest.raises(OptionError, match=r"^seed is .{2,90}, expected 0 to 9,223,372,036,854,775,807\.$"):
        TrainingOptions(seed=10**400)


@pytest.mark.parametrize("seed", [-1, MAX_SEED + 1, 10**400, 10**5000], ids=range(4))
def test_what_is_no_seed(seed: int) -> None:
    with pytest.raises(OptionError, match=r"^seed is .{2,90}, expected 0 to 2,147,483,647\.$"):
        check_seed(Seeded(seed))


@pytest.mark.parametrize("value", ["nan", "inf", "0", "-1"])
@pytest.mark.parametrize("name", ["learning_rate", "textless_learning_rate", "adam_epsilon"])
def test_a_rate_is_a_number_above_zero(name: str, value: str) -> None:
    with pytest.raises(OptionError, match=rf"^{name} is "):
        TrainingOptions(**{name: float(value)})


@dataclass(frozen=True)
class Bounded:
    rate: float | Literal["auto"] | None = None
    rows: int | None = None
    types: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_above(self, {"rate": 0})
        check_at_least(self, {"rows": 2})


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"rate": 0}, "rate is 0, expected more than 0, 'auto' or None."),
        ({"rate": float("nan")}, "rate is nan, expected more than 0, 'auto' or None."),
        ({"rate": "fast"}, "rate is 'fast', expected more than 0, 'auto' or None."),
        ({"rows": 1}, "rows is 1, expected at least 2 or None."),
        ({"rows": "1"}, "rows is '1', expected at least 2 or None."),
    ],
)
def test_a_refusal_names_all_that_is_allowed(values: dict[str, Any], problem: str) -> None:
    with pytest.raises(OptionError) as caught:
        Bounded(**values)
    assert str(caught.value) == problem


def test_options_with_keywords() -> None:
    found = with_keywords(Bounded(rows=5), {"rate": "auto", "types": ["paper"]})
    assert found == Bounded("auto", 5, ("paper",))


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"row": 3}, "no option 'row' (did you mean 'rows'?)."),
        ({"rows": "many"}, "rows is 'many', expected a whole number or None."),
        ({"types": "paper"}, "types is 'paper', expected a list, each of which is a text."),
    ],
)
def test_keywords_that_do_not_fit(values: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError) as caught:
        with_keywords(Bounded(), values)
    assert str(caught.value) == problem
