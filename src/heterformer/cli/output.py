"""What commands print: sentences and JSON on standard output."""

from __future__ import annotations

from json import dumps
from typing import Any

from rich.text import Text

from heterformer.progress import console


def print_line(sentence: object) -> None:
    """Print a sentence or a path as it is, whatever its brackets, on one line."""
    console.print(Text(str(sentence)), soft_wrap=True)


def print_json(values: Any) -> None:
    """Print values for programs to read."""
    print(dumps(values, indent=1, ensure_ascii=False))
