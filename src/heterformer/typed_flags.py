"""Flags as the user typed them: a group of options does not know the prefix that a command gives it."""

from __future__ import annotations

import re
from collections.abc import Sequence

FLAG = re.compile(r"(?<![\w-])--([a-z][a-z0-9-]*(?:\.[a-z0-9-]+)*)")


def as_typed(message: str, arguments: Sequence[str]) -> str:
    """The message with ``--min-members`` as ``--labels.min-members`` if that is what was typed.

    Of several typed flags that end so, the one whose value the message names is meant.
    """
    typed = _typed(arguments)
    groups = [group for flag in FLAG.findall(message) if (group := _group(flag, message, typed)) is not None]
    if len(set(groups)) != 1 or not groups[0]:
        return message
    # A flag that was not typed is of the same group as the one that was.
    return FLAG.sub(lambda found: f"--{groups[0]}.{found[1]}" if "." not in found[1] else found[0], message)


def _typed(arguments: Sequence[str]) -> list[tuple[str, str]]:
    """(flag, value) of all flags; underscores stand for dashes, and a value may follow '='."""
    found = []
    for word, following in zip(arguments, [*arguments[1:], ""], strict=True):
        if word.startswith("--"):
            flag, equals, value = word[2:].partition("=")
            found.append((flag.replace("_", "-"), value if equals else following))
    return found


def _group(flag: str, message: str, typed: Sequence[tuple[str, str]]) -> str | None:
    """The prefix that the flag was typed with, '' if with none, nothing if it was not typed."""
    same = [(name.rpartition("."), value) for name, value in typed if name.rpartition(".")[2] == flag]
    named = [(name, value) for name, value in same if value and value in message]
    groups = {name[0] for name, _ in named or same}
    return groups.pop() if len(groups) == 1 else None
