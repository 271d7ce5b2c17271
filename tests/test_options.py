"""Whether a value fits an option, and how a text or YAML value is read as one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest

from heterformer.options import expected, fits, option_types, read_value

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
    ],
)
def test_fits(value: object, hint: Any, fitting: bool) -> None:
    assert fits(value, hint) is fitting


def test_what_is_expected_in_words() -> None:
    assert expected(Literal["a", "b"]) == "one of a, b"
    assert expected(Auto) == "a whole number or 'auto'"
    assert expected(bool) == "true or false"


@pytest.mark.parametrize(
    ("value", "hint", "found"),
    [
        ("1e-5", float, 1e-5),  # YAML reads it as a text
        (2, float, 2.0),
        ("7", Auto, 7),
        ("none", Auto, None),
        (True, Literal["yes", "no"], "yes"),  # YAML's yes
        (5, str, "5"),
    ],
)
def test_values_of_yaml(value: object, hint: Any, found: Any) -> None:
    read = read_value(value, hint)
    assert (read, type(read)) == (found, type(found))


@pytest.mark.parametrize(
    ("value", "hint"), [("many", int), (1.5, int), ("maybe", Literal["yes"]), (None, int)]
)
def test_a_value_that_does_not_fit(value: object, hint: Any) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        read_value(value, hint)
