"""The queries of one ``heterformer search``: one, those of a file, or those that a person types."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from heterformer.errors import InputError
from heterformer.progress import messages
from heterformer.search.options import SearchOptions


def read_queries(query: str, options: SearchOptions) -> Iterable[str]:
    """The query texts to answer, in order."""
    if options.queries is not None:
        return _lines(options.queries)
    return _typed() if options.interactive else [query]


def _lines(path: Path) -> list[str]:
    """The lines of a file that are not empty."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise InputError(f"{path}: the queries cannot be read ({error.strerror}).") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: is not UTF-8, expected a text file with one query per line.") from None
    queries = [line.strip() for line in lines if line.strip()]
    if not queries:
        raise InputError(f"{path}: has no queries, expected one per line.")
    return queries


def _typed() -> Iterator[str]:
    """Lines of standard input, up to an empty one or its end; a prompt where somebody can see it."""
    while True:
        if sys.stdin.isatty():
            messages.print("query: ", end="")
        try:
            line = sys.stdin.readline().strip()
        except UnicodeDecodeError:
            raise InputError("standard input is not UTF-8, expected a query per line.") from None
        if not line:
            return
        yield line
