"""Values of options: whether one fits the type of its field, and how a text or YAML value is read as one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from heterformer.errors import OptionError
from heterformer.untrusted import short_repr

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
        value = getattr(options, name)
        if value not in (None, "auto") and not value > bound:  # nor is NaN
            least = "0 or more" if bound < 0 else f"more than {bound}"
            raise OptionError(options, name, f"is {value}, expected {least}.")


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
        return f"one of {', '.join(words)}"
    return " or ".join([*kind_names, *map(repr, words)])


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


def _kinds(hint: Any) -> set[Any]:
    return {kind for kind in _parts(hint) if get_origin(kind) is not Literal}


def _words(hint: Any) -> list[str]:
    return [word for kind in _parts(hint) if get_origin(kind) is Literal for word in get_args(kind)]


def _parts(hint: Any) -> tuple[Any, ...]:
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    return get_args(hint) if isinstance(hint, UnionType) or get_origin(hint) is Union else (hint,)
