"""Flags: how a command spells its options, and words of a command line that are read before tyro does."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from functools import wraps
from itertools import zip_longest
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from heterformer.errors import InputError, OptionError
from heterformer.search.options import SearchOptions


def value_of(words: Sequence[str], name: str) -> str | None:
    """The value of ``--name`` on a command line; the last one, as tyro takes it."""
    value = None
    for word, following in zip_longest(words, words[1:]):
        flag, equals, given = word.partition("=")
        if flag == f"--{name}":
            value = given if equals else following
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
    hints = get_type_hints(SearchOptions, include_extras=True)
    options = {(_own_name(hints[f.name]) or f.name).replace("_", "-") for f in fields(SearchOptions)}
    known = options | {f"no-{name}" for name in options} | {"help"}
    result, rest = [], iter(words)
    for word in rest:
        flag, equals, value = word.partition("=")
        name = flag.removeprefix("--")
        if not flag.startswith("--") or name.replace("_", "-") in known:
            result.append(word)
            continue
        neighbor = value if equals else next(rest, None)
        if neighbor is None:
            raise InputError(
                f"'heterformer search' has no option {flag}, and as a node type it needs a name."
            )
        result += ["--with", f"{name}={neighbor}"]
    return result


def in_flags(error: OptionError, command: Callable[..., Any] | None) -> str:
    """The sentence of an error with the flags of a command in the place of fields.

    A group of options does not know the prefix that a command gives it, such as ``labels`` in
    ``--labels.min-members``; the command's signature does.
    """
    groups = _groups(command) if command is not None else iter(())
    prefix = next((p for p, kind in groups if error.owner and issubclass(error.owner, kind)), "")
    hints = get_type_hints(error.owner, include_extras=True) if error.owner else {}

    def flag(field: str) -> str:
        name = _own_name(hints.get(field)) or field
        return "--" + (prefix + name).replace("_", "-")

    return error.worded(flag)


def _groups(owner: Callable[..., Any], prefix: str = "") -> Iterator[tuple[str, type]]:
    """(prefix, class) of all groups of options that a command or a group takes."""
    for name, hint in get_type_hints(owner, include_extras=True).items():
        kind = get_args(hint)[0] if get_origin(hint) is Annotated else hint
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
