"""Text from data is data: names as terminals, Markdown and spreadsheets show them, without being obeyed."""

from __future__ import annotations

import codecs
import re

# Control characters but for line ends and tabs, halves of surrogate pairs, and what reorders a line of text.
UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
# Of brackets, those that end the text of a link.
MARKDOWN = re.compile(r"[\\`*~<>|#]|\](?=[(\[:])|(?<!\w)_|_(?!\w)|&(?=#?\w+;)")
# What our own sentences and tables contain, for terminals and pipes that cannot show it.
PLAIN = {"→": "->", "←": "<-", "…": "...", "·": "-", "±": "+/-", "—": "-"}
PLAIN |= {"†": "*", "‡": "**"} | dict(zip("▏▎▍▌▋▊▉█▁▂▃▄▅▆▇", "---===##_.-=+*%", strict=True))
PLAIN |= dict.fromkeys("─━═╌┄╴╶╸╺", "-") | dict.fromkeys("│┃║", "|")
FALLBACK = "heterformer-fallback"  # the name of the handler of characters that an encoding lacks
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def terminal_text(text: str) -> str:
    r"""Text with control and escape characters written out, such as ``\x1b``."""
    return UNPRINTABLE.sub(lambda match: repr(match[0])[1:-1], text)


def markdown_text(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    return MARKDOWN.sub(r"\\\g<0>", terminal_text(" ".join(text.split())))


def spreadsheet_text(text: str) -> str:
    """Text that no spreadsheet takes for a formula: an apostrophe comes before what would begin one."""
    return f"'{text}" if text.startswith(FORMULA) else text


def encodable_text(text: str, encoding: str) -> str:
    r"""Text that ``encoding`` has all characters of: ``->`` for an arrow, ``\xe9`` for a letter it lacks."""
    return text if encoding.lower().startswith("utf") else text.encode(encoding, FALLBACK).decode(encoding)


def _replaced(error: UnicodeError) -> tuple[str | bytes, int]:
    """The replacement of the first character that cannot be encoded, and where encoding goes on."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    character = error.object[error.start]
    plain = PLAIN.get(character)
    if plain is None and "─" <= character <= "╿":  # corners and crossings of boxes
        plain = "+"
    if plain is None:
        plain = character.encode("ascii", "backslashreplace").decode("ascii")
    return plain, error.start + 1


codecs.register_error(FALLBACK, _replaced)
