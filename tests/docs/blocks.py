"""The pages of the documentation and their fenced blocks; needs nothing but Python."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SLOW = re.compile(r"max_steps=100(, batch_size=\d+)?")  # the size of a training in a piece of Python


@dataclass(frozen=True)
class Block:
    """A fenced block: ``csv papers.csv`` is a file to write, ``bash`` and ``python`` are to run."""

    page: Path
    language: str
    file: str
    text: str
    line: int

    @property
    def place(self) -> str:
        return f"{self.page.name}, line {self.line}"


def pages() -> list[Path]:
    """The README and everything in docs/."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path) -> list[Block]:
    """Every fenced block, those without a language among them."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in re.finditer(r"^```(\w*)(?: (\S+))?\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        line = text[: match.start()].count("\n") + 1
        found.append(Block(page, match[1], match[2] or "", match[3], line))
    assert len(found) == len(re.findall(r"^```", text, re.MULTILINE)) / 2
    return found


def commands(block: Block) -> list[list[str]]:
    """The lines of a ``bash`` block as words, without comments."""
    return [shlex.split(line, comments=True) for line in block.text.splitlines()]


def without_max_steps(words: list[str]) -> list[str]:
    """A command's words without the size of its training."""
    if "--max-steps" not in words:
        return words
    place = words.index("--max-steps")
    return words[:place] + words[place + 2 :]


def readme_tables() -> dict[str, str]:
    """The tables of docs/own-data.md with the further columns that the README's specification names."""
    tables = {block.file: block.text for block in blocks(ROOT / "docs" / "own-data.md") if block.file}
    header, *rows = tables["papers.csv"].splitlines()
    venues = ("ACL", "EMNLP")
    lines = [f"{row},about {row.split(',')[3]},{venues[i % 2]}" for i, row in enumerate(rows)]
    papers = "\n".join([f"{header},abstract,venue", *lines]) + "\n"
    return {"papers.csv": papers, "cites.csv": tables["cites.csv"]}
