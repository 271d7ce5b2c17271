"""A table of figures, on a screen or in a page."""

from __future__ import annotations

from dataclasses import dataclass

from rich import box
from rich.console import JustifyMethod
from rich.table import Table
from rich.text import Text


@dataclass(frozen=True)
class Sheet:
    """Words in the first columns, figures in the others, and below them what they mean."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str
    words: int
    """So many columns from the left hold words."""

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
            words = number < self.words
            justify: JustifyMethod = "left" if words else "right"
            table.add_column(Text(heading), justify=justify, no_wrap=not words, overflow="fold")
        for row in self.rows:
            table.add_row(*map(Text, row))
        return table

    def markdown(self) -> str:
        """For a page; without the title, which is the page's business."""
        rules = ["---" if number < self.words else "---:" for number in range(len(self.headings))]
        lines = [_line(self.headings), _line(rules), *map(_line, self.rows)]
        return "\n".join([*lines, "", self.note])


def four_digits(figure: float) -> str:
    """Four digits behind the point, and nothing before it but a one or a sign."""
    digits = f"{abs(figure):.4f}".removeprefix("0")
    return f"-{digits}" if figure < 0 and digits != ".0000" else digits


def _line(cells: tuple[str, ...] | list[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def short(name: str, longest: int) -> str:
    """A name on one line, cut if it has more letters."""
    name = " ".join(name.split())
    return name if len(name) <= longest else name[: longest - 1] + "…"
