"""A table for the terminal and for Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich import box
from rich.console import JustifyMethod
from rich.table import Table
from rich.text import Text

from heterformer.escapes import markdown_text


@dataclass(frozen=True)
class Sheet:
    """Text in the first columns, numbers in the others, and a note below."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str
    text_columns: int

    def table(self) -> Table:
        """For the terminal."""
        table = Table(
            title=Text(self.title, "bold"),
            title_justify="left",
            caption=Text(self.note),
            caption_justify="left",
            box=box.SIMPLE_HEAD,
            padding=0,  # so that ten columns fit into eighty characters
            pad_edge=False,
        )
        for number, heading in enumerate(self.headings):
            text = number < self.text_columns
            justify: JustifyMethod = "left" if text else "right"
            table.add_column(Text(heading), justify=justify, no_wrap=not text, overflow="fold")
        for row in self.rows:
            table.add_row(*map(Text, row))
        return table

    def markdown(self) -> str:
        """For a page, which has the title as a heading of its own."""
        rules = ["---" if number < self.text_columns else "---:" for number in range(len(self.headings))]
        lines = [_line(self.headings), f"| {' | '.join(rules)} |", *map(_line, self.rows)]
        return "\n".join([*lines, "", self.note])


def four_digits(number: float) -> str:
    """Four decimals, without the zero before the point: .1234."""
    digits = f"{abs(number):.4f}".removeprefix("0")
    return f"-{digits}" if number < 0 and digits != ".0000" else digits


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(markdown_text, cells))} |"


def listed(names: Sequence[str]) -> str:
    """Names in a sentence: "A, B and C"."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def short(name: str, longest: int) -> str:
    """A name on one line, cut if it has more letters."""
    name = " ".join(name.split())
    return name if len(name) <= longest else name[: longest - 1] + "…"
