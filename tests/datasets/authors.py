"""Training files as Heterformer's authors prepared them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from heterformer.datasets.authors_lines import SEPARATOR

# Two texts of neighbours, two shelves and one author on each side.
LAYOUT = ("shelf=2", "author=1")


def side(text: str, neighbors: Sequence[str] = (), shelves: Sequence[int] = (), author: int = -1) -> str:
    texts = [*neighbors, "", ""][:2]
    return "\t".join([text, *texts, *map(str, [*shelves, -1, -1][:2]), str(author)])


def line(query: str, key: str) -> str:
    return f"{query}{SEPARATOR}{key}\n"


def write_parts(folder: Path, train: Sequence[str], val: Sequence[str], test: Sequence[str]) -> None:
    for name, lines in {"train": train, "val": val, "test": test}.items():
        (folder / f"{name}.tsv").write_text("".join(lines), encoding="utf-8", newline="")
