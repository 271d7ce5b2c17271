"""The one exception that means: the input is wrong, not the program."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

LONGEST_VALUE = 80  # characters of a value that an error repeats
# Quoted values, also short ones, so that the end of one is not taken for the beginning of another; long
# numbers; and what is longer than any path that somebody would type.
VALUE = re.compile(r"""(?<!\w)(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|\d{81,}|\S{299,}[^\s.,:;]""", re.DOTALL)
COMMAND = ("heterformer ", "pip ")  # quoted, too, and to be typed as it is


class InputError(Exception):
    """A mistake in the input. Its message is one sentence: where, what was found, what was expected.

    The command line prints it without a traceback and exits with 1.

    Example:
        >>> from heterformer import InputError, Network
        >>> try:
        ...     Network.open("missing.net")
        ... except InputError as error:
        ...     print(error)
        missing.net: not a network, expected a folder that 'heterformer build' wrote.
    """

    # No ValueError: tyro takes those of a group of options for its own and prints other names of the fields.

    def __init__(self, sentence: str = "") -> None:
        super().__init__(with_short_values(sentence))


class OptionError(InputError):
    """An option with a value that does not fit: the field, the value found, the value expected.

    Args:
        options: The options that have the field, or their class; None for an argument of a function.
        fields: The name of the field, or the names of several, with which the sentence begins.
        problem: The rest of the sentence. A field of the same options that it names is written ``{field}``.
        place: What comes before the field, such as a path.

    Its message names fields, as Python callers know them. The command line, which alone spells flags, asks
    for the same sentence by ``worded``.

    Example::

        raise OptionError(self, "top", f"is {self.top}, expected at least 1.")
    """

    def __init__(
        self, options: object, fields: str | Sequence[str], problem: str, *, place: str = ""
    ) -> None:
        self.owner = options if options is None or isinstance(options, type) else type(options)
        self.fields = (fields,) if isinstance(fields, str) else tuple(fields)
        self.place = place
        self.problem = problem
        super().__init__(self.worded(str))

    def worded(self, spell: Callable[[str], str]) -> str:
        """The sentence with each field as ``spell`` writes it."""
        known = getattr(self.owner, "__dataclass_fields__", {})

        def spelled(match: re.Match[str]) -> str:
            return spell(match[1]) if self.owner is None or match[1] in known else match[0]

        named = ", ".join(map(spell, self.fields)) + " " * bool(self.fields)
        return with_short_values(self.place + named + re.sub(r"{(\w+)}", spelled, self.problem))


def with_short_values(sentence: str) -> str:
    """A sentence in which quoted values and numbers are cut after 80 characters."""

    def cut(match: re.Match[str]) -> str:
        text = match[0]
        quote = text[0] if text[0] in "'\"" else ""
        value = text.removeprefix(quote).removesuffix(quote)
        if len(value.removesuffix("…")) <= LONGEST_VALUE or value.startswith(COMMAND):
            return text
        return f"{quote}{value[:LONGEST_VALUE]}…{quote}"

    return VALUE.sub(cut, sentence)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory was asked for that there is not; PyTorch has no class for that on a processor."""
    words = ("can't allocate memory", "out of memory", "Storage size calculation overflowed")
    return isinstance(error, MemoryError) or any(word in str(error) for word in words)


def first_line(error: BaseException) -> str:
    """What an error says first."""
    return str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__


class ReportedElsewhereError(InputError):
    """A mistake that another process of the same run reports; this one exits silently."""
