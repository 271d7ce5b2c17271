"""Flags: how a command spells its options, and words of a command line that are read before tyro does."""

from __future__ import annotations

import inspect
import os
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from functools import wraps
from itertools import takewhile, zip_longest
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from tyro.conf import Positional, Suppress

from heterformer.errors import LONGEST_VALUE, InputError, OptionError
from heterformer.options import expected
from heterformer.precision import EARLIER_PRECISIONS
from heterformer.search.options import SearchOptions
from heterformer.training.options import EARLIER_TASKS
from heterformer.untrusted import is_text


def value_of(words: Sequence[str], name: str) -> str | None:
    """The value of ``--name`` on a command line; the last one, as tyro takes it."""
    value = None
    for word, following in zip_longest(words, words[1:]):
        flag, equals, inline = word.partition("=")
        if flag == f"--{name}":
            value = inline if equals else following
    return value


def with_defaults(command: Callable[..., Any], **defaults: Any) -> Callable[..., Any]:
    """The same command with other defaults of its arguments."""

    @wraps(command)
    def run(*arguments: Any, **options: Any) -> Any:
        return command(*arguments, **options)

    signature = inspect.signature(command)
    parameters = [
        p.replace(default=defaults[p.name]) if p.name in defaults else p
        for p in signature.parameters.values()
    ]
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return run


def with_neighbor_flags(words: Sequence[str]) -> list[str]:
    """The words of ``search`` with ``--author NAME`` written out as ``--with author=NAME``.

    Node types are the network's own, so every flag that is not an option of ``search`` is taken for one.
    """
    # tyro needs all flags of a command before it reads one, and only an open run knows its node types.
    known = {name for option in search_flags() for name in (option, f"no-{option}")} | {"help"}
    result, rest = [], iter(words)
    for word in rest:
        flag, equals, value = word.partition("=")
        name = flag.removeprefix("--")
        if not flag.startswith("--") or name.replace("_", "-") in known:
            result.append(word)
            continue
        neighbor = value if equals else next(rest, None)
        if neighbor is None:
            hint = similar(name, search_flags())
            raise InputError(
                f"'heterformer search' has no option {flag}{hint}, and as a node type it needs a name."
            )
        result += ["--with", f"{name}={neighbor}"]
    return result


def check_flags(name: str, known: Collection[str], words: Sequence[str]) -> None:
    """Refuse a flag that a command does not have, and name those that look like it."""
    names = {*known, *(f"no-{k}" for k in known), "help"}
    for word in words:
        flag = word.partition("=")[0]
        option = flag.removeprefix("--").replace("_", "-")
        if flag.startswith("--") and len(flag) > 2 and option not in names:
            raise InputError(f"'heterformer {name}' has no option {flag}{similar(option, known)}.")


def similar(option: str, known: Collection[str]) -> str:
    """A hint at the flags that look like an unknown one."""
    last = option.rpartition(".")[2]
    close = [last] if last in known else get_close_matches(option, known, n=2)
    return f" (did you mean {' or '.join(f'--{one}' for one in close)}?)" if close else ""


def check_name(what: str, name: str, known: Collection[str]) -> None:
    """Refuse a command or data set that does not exist; ``what`` says which of both."""
    if name.startswith("-") or name in known:
        return
    names = ", ".join(known)
    if not name:
        raise InputError(f"the {what} is missing, expected one of {names}.")
    close = get_close_matches(name, known, n=1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    raise InputError(f"there is no {what} {name!r}{hint}; the {what}s are {names}.")


def check_arguments(name: str, command: Callable[..., Any], words: Sequence[str], *more: type) -> None:
    """Refuse a command line without an argument that must be there, or with one too many.

    ``more`` are groups of options that the command takes besides those of its signature.
    """
    if {"--help", "-h"} & set(words):
        return
    plain = _plain_words(words, command, *more)
    positional, flags = _arguments(command)
    required = [metavar for metavar, (_, is_required) in positional.items() if is_required]
    missing = required[len(plain) :] + [flag for flag in flags if value_of(words, flag[2:]) is None]
    if missing:
        are = "is" if len(missing) == 1 else "are"
        raise InputError(f"{' and '.join(missing)} {are} missing; see 'heterformer {name} --help'.")
    is_list = any(get_origin(kind) is tuple for kind, _ in positional.values())
    if len(plain) > len(positional) and not is_list:
        problem = f"found {plain[len(positional)]!r} after {' '.join(positional)}, expected options"
        raise InputError(f"{problem}; see 'heterformer {name} --help'.")


def _arguments(command: Callable[..., Any]) -> tuple[dict[str, tuple[Any, bool]], list[str]]:
    """Positional arguments, each with its type and whether it must be there, and flags that must be."""
    hints = get_type_hints(command, include_extras=True)
    positional, flags = {}, []
    for name, parameter in inspect.signature(command).parameters.items():
        hint, is_required = hints[name], parameter.default is parameter.empty
        if _has_marker(hint, Positional):
            metavar = next(m.metavar for m in get_args(hint)[1:] if getattr(m, "metavar", None))
            positional[metavar] = _kind(hint), is_required
        elif is_required and not is_dataclass(_kind(hint)):
            flags.append(f"--{name.replace('_', '-')}")
    return positional, flags


def _plain_words(words: Sequence[str], *owners: Any) -> list[str]:
    """The words that are neither flags nor their values; an unknown flag has one, as a node type has."""
    hints = {name: hint for owner in owners for name, hint in _flag_hints(owner)}
    plain, rest = [], deque(words)
    while rest:
        flag, equals, _ = (word := rest.popleft()).partition("=")
        if not word.startswith("--"):
            plain.append(word)
            continue
        name = flag.removeprefix("--").replace("_", "-")
        hint = hints.get(name, hints.get(name.removeprefix("no-")))
        count = 0 if equals or hint is bool or name == "help" else 1
        while count and rest and not rest[0].startswith("--"):
            rest.popleft()
            count = 1 if get_origin(hint) is tuple else 0
    return plain


def check_one_query(words: Sequence[str]) -> None:
    """Refuse a query of ``search`` of several words without quotes, which the shell has divided."""
    _, *query = _plain_words(words, SearchOptions) or [""]
    if len(query) > 1:
        problem = f"found {len(query)} words after the run, expected one query in quotes"
        raise InputError(f'{problem}: "{" ".join(query)}".')


def check_unicode(words: Sequence[str]) -> None:
    """Refuse a word that is not UTF-8, unless it names something on disk."""
    for word in words:
        if not is_text(word) and not any(os.path.lexists(p) for p in (word, word.partition("=")[2])):
            raise InputError(f"found {word!r}, which is not UTF-8, expected text in UTF-8.")


def check_values(owner: Any, words: Sequence[str]) -> None:
    """Refuse a value of a number or a choice that is none, in one sentence, and what tyro lets pass.

    That is an empty path, which would be the working folder, NaN, and endless numbers.
    """
    hints = dict(_flag_hints(owner))
    for number, (word, following) in enumerate(zip_longest(words, words[1:])):
        flag, equals, value = word.partition("=")
        name = flag.removeprefix("--").replace("_", "-")
        if not flag.startswith("--") or name not in hints:
            continue
        value, hint = value if equals else following, hints[name]
        if get_origin(hint) is tuple and not equals:
            _check_list(flag, takewhile(lambda w: not w.startswith("--"), words[number + 1 :]), hint)
        if value is None or (value.startswith("--") and not equals):
            continue
        if not value and Path in _parts(hint):
            raise InputError(f"{flag} is empty, expected a path.")
        if float in _parts(hint) and value.lower().lstrip("+-") == "nan":
            raise InputError(f"{flag} is {value}, expected a number.")
        if len(value) > LONGEST_VALUE and not {Path, str} & set(_parts(hint)):
            raise InputError(f"{flag} is {value!r}, expected at most {LONGEST_VALUE} characters.")
        if get_origin(hint) is not tuple and not _is_value(value, hint):
            raise InputError(f"{flag} is {value!r}, expected {expected(hint)}.")


def _check_list(flag: str, values: Iterable[str], hint: Any) -> None:
    element = get_args(hint)[0]
    for value in values:
        if not _is_value(value, element):
            raise InputError(f"{flag} has {value!r}, expected {expected(element)}.")


def _is_value(value: str, hint: Any) -> bool:
    """Whether a word can be a value of the type; types that are no numbers or choices are left to tyro."""
    for part in _parts(hint):
        if part in (int, float):
            try:
                part(value)
            except ValueError:
                continue
            return True
        if part is type(None):
            if value == "None":
                return True
        elif get_origin(part) is not Literal or value in (*map(str, get_args(part)), *earlier_names(part)):
            return True
    return False


def earlier_names(hint: Any) -> dict[str, str]:
    """The names that choices of a type had earlier, which are values, too, and their names of today."""
    names = get_args(hint) if get_origin(hint) is Literal else ()
    tables = (EARLIER_TASKS, EARLIER_PRECISIONS if "bf16" in names else {})
    return {str(old): new for table in tables for old, new in table.items() if old and new in names}


def search_flags() -> list[str]:
    """The options of ``search`` without their dashes."""
    return list(flag_names(SearchOptions))


def flag_names(owner: Any, prefix: str = "") -> Iterator[str]:
    """The options that a command or a group of options takes, without their dashes."""
    return (name for name, _ in _flag_hints(owner, prefix))


def _flag_hints(owner: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The options that a command or a group of options takes, without their dashes, and their types."""
    hints = get_type_hints(owner, include_extras=True)
    names = (f.name for f in fields(owner)) if is_dataclass(owner) else hints.keys() - {"return"}
    for name in names:
        hint = hints[name]
        if _has_marker(hint, Suppress):
            continue
        own, kind = _own_name(hint), _kind(hint)
        if isinstance(kind, type) and is_dataclass(kind):
            inner = prefix if own == "" else f"{prefix}{own or name}."
            yield from _flag_hints(kind, inner)
        elif not _has_marker(hint, Positional):
            yield (prefix + (own or name)).replace("_", "-"), kind


def in_flags(error: OptionError, command: Callable[..., Any] | None) -> str:
    """The sentence of an error with the flags of a command in the place of fields.

    A group of options does not know the prefix that a command gives it, such as ``labels`` in
    ``--labels.min-members``; the command's signature does. An option that a group leaves to the command has
    no prefix.
    """
    owner, groups = error.owner, list(_groups(command)) if command is not None else []
    own = [group for group in groups if owner and issubclass(owner, group[1])]
    derived = [group for group in groups if owner and issubclass(group[1], owner)]
    prefix, kind = next(iter([*own, *derived]), ("", owner))
    narrower = kind if owner and kind and issubclass(kind, owner) else owner
    hints = get_type_hints(narrower, include_extras=True) if narrower else {}

    def flag(field: str) -> str:
        hint = hints.get(field)
        name = _own_name(hint) or field
        return "--" + (name if _has_marker(hint, Suppress) else prefix + name).replace("_", "-")

    return error.worded(flag)


def _groups(owner: Callable[..., Any], prefix: str = "") -> Iterator[tuple[str, type]]:
    """(prefix, class) of all groups of options that a command or a group takes."""
    for name, hint in get_type_hints(owner, include_extras=True).items():
        kind = _kind(hint)
        if is_dataclass(kind) and isinstance(kind, type):
            own = _own_name(hint)
            inner = f"{prefix}{name if own is None else own}."
            inner = inner if own != "" else prefix
            yield inner, kind
            yield from _groups(kind, inner)


def _own_name(hint: Any) -> str | None:
    """The name that ``tyro.conf.arg`` gives an option, if any."""
    markers = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    return next((m.name for m in markers if getattr(m, "name", None) is not None), None)


def _kind(hint: Any) -> Any:
    """The type of an option without tyro's annotations; of one that a factory makes, what it makes."""
    if get_origin(hint) is not Annotated:
        return hint
    kind, *markers = get_args(hint)
    factories = (getattr(marker, "constructor_factory", None) for marker in markers)
    return next((factory() for factory in factories if factory is not None), kind)


def _parts(hint: Any) -> tuple[Any, ...]:
    """The types that a value may have, also of the elements of a tuple."""
    arguments = get_args(hint)
    if not arguments or get_origin(hint) is Literal:
        return (hint,)
    return tuple(part for argument in arguments for part in _parts(argument))


def _has_marker(hint: Any, marker: Any) -> bool:
    return get_origin(hint) is Annotated and marker in get_args(hint)[1:]
