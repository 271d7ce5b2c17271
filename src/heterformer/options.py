"""Values of options: whether one fits the type of its field, and how a text or YAML value is read as one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from difflib import get_close_matches
from numbers import Real
from operator import ge, gt
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from heterformer.errors import InputError, OptionError
from heterformer.untrusted import short_repr

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    T = TypeVar("T", bound=DataclassInstance)

MAX_SEED = 2**31 - 1  # which every generator takes, also with a number added
MAX_LARGE_SEED = 2**63 - 1  # which those of NumPy and PyTorch take


def check_seed(options: object, name: str = "seed", largest: int = MAX_SEED) -> None:
    """Refuse a seed that a generator of random numbers would."""
    value = getattr(options, name)
    if not 0 <= value <= largest:
        problem = f"is {short_repr(value)}, expected 0 to {largest:,}."
        raise OptionError(options, name, problem)


def check_above(options: object, bounds: Mapping[str, float]) -> None:
    """Refuse numbers that are not above their bounds; an option may be left open."""
    for name, bound in bounds.items():
        _check_number(options, name, gt, bound, f"more than {bound}")


def check_at_least(options: object, bounds: Mapping[str, float]) -> None:
    """Refuse numbers that are below their bounds; an option may be left open."""
    for name, bound in bounds.items():
        _check_number(options, name, ge, bound, f"at least {bound}")


def _check_number(
    options: object, name: str, compare: Callable[[Any, float], bool], bound: float, expectation: str
) -> None:
    value = getattr(options, name)
    if value in (None, "auto") or (isinstance(value, Real) and compare(value, bound)):  # NaN never is
        return
    problem = f"is {short_repr(value)}, expected {with_alternatives(options, name, expectation)}."
    raise OptionError(options, name, problem)


def check_argument(options: type, name: str, value: object) -> None:
    """Refuse an argument that does not fit the option of its name, such as one text in place of a list."""
    hint = option_types(options)[name]
    if not fits(value, hint):
        raise OptionError(options, name, f"is {short_repr(value)}, expected {expected(hint)}.")


def with_keywords(options: T, keywords: Mapping[str, Any]) -> T:
    """Options with some of them given by name, as a Python caller may misspell or mistake them."""
    hints, values = option_types(type(options)), dict(keywords)
    for name, value in keywords.items():
        if name not in hints:
            raise unknown_option(name, hints)
        check_argument(type(options), name, value)
        if isinstance(value, list):
            values[name] = tuple(value)
    return replace(options, **values)


def unknown_option(name: str, known: Iterable[str], whose: str = "") -> InputError:
    """The error of an option that does not exist, with the most similar one that does."""
    guess = get_close_matches(name, list(known), n=1)
    hint = f" (did you mean {guess[0]!r}?)" if guess else ""
    return InputError(f"{whose}no option {name!r}{hint}.")


def with_alternatives(options: object, name: str, expectation: str) -> str:
    """What an option takes, in words, with the words and None that it takes as well."""
    return either([expectation, *_alternatives(option_types(type(options))[name])])


def option_types(options: type) -> dict[str, Any]:
    """The types of a dataclass's fields, without annotations for the command line."""
    hints = get_type_hints(options)
    return {field.name: hints[field.name] for field in fields(options)}


def fits(value: object, hint: Any) -> bool:
    """Whether a value is of the type of a field."""
    if get_origin(hint) is tuple:
        return isinstance(value, (tuple, list)) and all(fits(each, get_args(hint)[0]) for each in value)
    kinds, words = _kinds(hint), _words(hint)
    if value is None or isinstance(value, bool):
        return type(value) in kinds
    if isinstance(value, str):
        return str in kinds or value in words
    if value != value:
        return False  # NaN, which no option means
    return isinstance(value, (int, float) if float in kinds else tuple(kinds - {None}))


def expected(hint: Any) -> str:
    """What a field takes, in words."""
    if get_origin(hint) is tuple:
        return f"a list, each of which is {expected(get_args(hint)[0])}"
    kinds, words = _kinds(hint), _words(hint)
    names = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
    kind_names = [name for kind, name in names.items() if kind in kinds]
    if words and not kind_names:
        return either([f"one of {', '.join(words)}", *_alternatives(hint)[len(words) :]])
    return either([*kind_names, *_alternatives(hint)])


def read_value(value: object, hint: Any) -> Any:
    """A value as the field has it; ValueError if it is none.

    YAML reads ``1e-5`` as a text, and ``yes`` and ``no`` as true and false.
    """
    if get_origin(hint) is tuple:
        items = value.split() if isinstance(value, str) else value
        if not isinstance(items, (list, tuple)):
            raise ValueError
        return tuple(read_value(each, get_args(hint)[0]) for each in items)
    kinds, words = _kinds(hint), _words(hint)
    if isinstance(value, bool) and bool not in kinds:
        value = "yes" if value else "no"
    if isinstance(value, str) and str not in kinds and value not in words:
        if type(None) in kinds and value.lower() in ("none", "null"):
            return None
        if bool in kinds and value.lower() in ("true", "false"):
            return value.lower() == "true"
        value = next((kind(value) for kind in (int, float) if kind in kinds), value)
    if str in kinds and isinstance(value, (int, float)):
        value = str(value)
    if not fits(value, hint):
        raise ValueError
    return float(value) if float in kinds and isinstance(value, int) else value


def _alternatives(hint: Any) -> list[str]:
    """The words of a hint, and None if it may be left open."""
    return [*map(repr, _words(hint)), *["None"] * (type(None) in _kinds(hint))]


def either(choices: Sequence[str]) -> str:
    """Choices as in a sentence: a, b or c."""
    *others, last = choices
    return f"{', '.join(others)} or {last}" if others else last


def _kinds(hint: Any) -> set[Any]:
    return {kind for kind in _parts(hint) if get_origin(kind) is not Literal}


def _words(hint: Any) -> list[str]:
    return [word for kind in _parts(hint) if get_origin(kind) is Literal for word in get_args(kind)]


def _parts(hint: Any) -> tuple[Any, ...]:
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    return get_args(hint) if isinstance(hint, UnionType) or get_origin(hint) is Union else (hint,)
