r"""Lines of the training files of Heterformer's authors.

A line is a pair, ``query\$\$key``. Each side is a text, a fixed number of neighbours' texts (empty where
there are fewer) and a fixed number of textless neighbours' numbers (-1 where there are fewer), by type.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from heterformer.datasets.raw_file import opened
from heterformer.errors import InputError, OptionError
from heterformer.network.schema import NodeType

SEPARATOR = r"\$\$"
LONGEST = 1 << 22  # bytes of one line
LINES = 5_000  # between two looks at the progress


@dataclass(frozen=True)
class AuthorsTsvOptions:
    """The layout of the lines; the defaults are those of the authors' Goodreads files."""

    text_type: str = "book"
    """Name of the node type with text."""
    text_neighbors: int = 5
    """Neighbours' texts on each side of a line."""
    textless: tuple[str, ...] = ("shelf=5", "author=2", "publisher=1", "language_code=1", "format=1")
    """Textless types in the order of the file, each with its number of columns."""
    counts: tuple[str, ...] = ()
    """Number of nodes of textless types (the authors' mta_num.pkl), such as shelf=6632, as a check."""
    max_tokens: int = 64
    """Tokens per text; longer texts are truncated."""
    test_batch_size: int = 100
    """Pairs per batch in the paper's in-batch evaluation."""

    def __post_init__(self) -> None:
        if self.text_neighbors < 0:
            raise OptionError(self, "text_neighbors", f"is {self.text_neighbors}, expected 0 or more.")
        if self.text_type in self.widths:
            raise OptionError(self, "text_type", f"is {self.text_type!r}, which {{textless}} has as well.")
        if unknown := set(self.limits) - set(self.widths):
            known = ", ".join(self.widths)
            problem = f"has {min(unknown)!r}, the types of {{textless}} are {known}."
            raise OptionError(self, "counts", problem)

    def _numbered(self, option: str) -> dict[NodeType, int]:
        numbers: dict[NodeType, int] = {}
        for value in getattr(self, option):
            name, _, number = value.partition("=")
            if not name or name in numbers or not (number.isdecimal() and int(number) > 0):
                problem = f"has {value!r}, expected each type once with a number, such as shelf=5."
                raise OptionError(self, option, problem)
            numbers[name] = int(number)
        return numbers

    @cached_property
    def widths(self) -> dict[NodeType, int]:
        """Numbers on each side of a line, by textless type, in order."""
        return self._numbered("textless")

    @cached_property
    def limits(self) -> dict[NodeType, int]:
        """How many nodes a textless type has, as far as it was said."""
        return self._numbered("counts")

    @property
    def fields(self) -> int:
        """Fields on each side of a line."""
        return 1 + self.text_neighbors + sum(self.widths.values())


@dataclass(frozen=True)
class NodeWithNeighbors:
    """One side of a line: a node and some of its neighbours."""

    text: str
    neighbors: list[str]
    numbers: list[tuple[NodeType, int]]


def lines(file: Path, options: AuthorsTsvOptions) -> Iterator[tuple[NodeWithNeighbors, NodeWithNeighbors]]:
    """Query and key of every line; a line that is not laid out as the options say is an error."""
    with opened(file) as (stream, tell):
        number = 0
        while line := stream.readline(LONGEST):
            number += 1
            place = f"{file}: line {number}"
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise InputError(f"{place}: byte {error.start + 1} is not UTF-8.") from None
            if not text.strip():
                continue
            sides = text.split(SEPARATOR)
            if len(sides) != 2:
                expected = f"expected two with {SEPARATOR} between them"
                raise InputError(f"{place}: found {len(sides)} sides, {expected}.")
            yield _parse_side(sides[0], options, place), _parse_side(sides[1], options, place)
            if number % LINES == 0:
                tell()


def _parse_side(text: str, options: AuthorsTsvOptions, place: str) -> NodeWithNeighbors:
    fields = text.split("\t")
    numbers = 1 + options.text_neighbors  # where they begin
    if len(fields) != options.fields:
        shape = f"a text, {options.text_neighbors} texts of neighbours and {options.fields - numbers} numbers"
        mismatch = f"found {len(fields)} fields on one side, expected {options.fields} ({shape})"
        problem = f"{mismatch}; set {{text_neighbors}} and {{textless}} to the numbers in the file."
        raise OptionError(options, (), problem, place=f"{place}: ")
    types = [node_type for node_type, width in options.widths.items() for _ in range(width)]
    numbered = [(t, _number(f, t, options, place)) for t, f in zip(types, fields[numbers:], strict=True)]
    neighbors = [field.strip() for field in fields[1:numbers]]
    return NodeWithNeighbors(
        fields[0].strip(), [n for n in neighbors if n], [(t, n) for t, n in numbered if n >= 0]
    )


def _number(text: str, node_type: NodeType, options: AuthorsTsvOptions, place: str) -> int:
    limit = options.limits.get(node_type, 2**63)
    try:
        number = int(text)
    except ValueError:
        number = limit
    if not -1 <= number < limit:
        below = f" below {limit}" if node_type in options.limits else ""
        expected = f"expected -1 or the number of a node{below}"
        raise InputError(f"{place}: found {text!r} for the type {node_type!r}, {expected}.")
    return number
