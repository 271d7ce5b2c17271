"""Text from data is data: names as terminals, Markdown and spreadsheets show them, without being obeyed."""

from __future__ import annotations

import re

# Control characters but for line ends and tabs, halves of surrogate pairs, and what reorders a line of text.
UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
# Of brackets, those that end the text of a link.
MARKDOWN = re.compile(r"[\\`*~<>|#]|\](?=[(\[:])|(?<!\w)_|_(?!\w)|&(?=#?\w+;)")
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
