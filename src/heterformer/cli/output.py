"""What commands print: sentences and JSON on standard output."""

from __future__ import annotations

import sys
from json import dumps
from typing import Any

from rich.text import Text

from heterformer.progress import console


def print_line(sentence: object) -> None:
    """Print a sentence or a path as it is, whatever its brackets, on one line."""
    console.print(Text(str(sentence)), soft_wrap=True)


def print_json_line(values: Any) -> None:
    """Print values for programs to read, on one line."""
    print(dumps(values, ensure_ascii=_ascii_only()), flush=True)


def print_json(values: Any) -> None:
    """Print values for programs to read."""
    print(dumps(values, indent=1, ensure_ascii=_ascii_only()))


def _ascii_only() -> bool:
    return not (sys.stdout.encoding or "utf-8").lower().startswith("utf")
