"""Flags: how a command spells the options that it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from heterformer.errors import OptionError


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
