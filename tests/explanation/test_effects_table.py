"""Effects as a reader sees them, in tables and in the figure."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from heterformer.explanation.effects import KindEffect, LeaveOneOut, NeighborEffect, WordEffect
from heterformer.explanation.effects_figure import draw_leave_one_out, leave_one_out_path
from heterformer.explanation.effects_table import leave_one_out_tables
from heterformer.search.searcher import NamedNode
from tests.explanation.explaining import TITLE
from tests.pictures import check_picture

HOSTILE = "a [red]name[/red] </script> $x_1$ " * 9


def effects(pair: bool, words: int = 6) -> LeaveOneOut:
    def score(value: float) -> float | None:
        return value if pair else None

    return LeaveOneOut(
        run="runs/small",
        node=NamedNode("paper", "p1", TITLE),
        pair=NamedNode("author", "a/1", "Jane Doe") if pair else None,
        score=score(12.5),
        kinds=(
            KindEffect(0.9, 0.1, score(-3.25), "text", words, "", "", ""),
            KindEffect(0.4, 0.8, score(2.0), "neighbors", 2, "", "", ""),
            KindEffect(0.1, 0.9, score(1.0), "relation", 1, "written_by", "out", "author"),
        ),
        neighbors=(
            NeighborEffect(0.3, 0.9, score(-2.0), "paper", "p2", HOSTILE, "cites, extends", "both"),
            NeighborEffect(0.1, 0.9, score(1.0), "author", "a1", "a1", "written_by", "out"),
        ),
        words=tuple(WordEffect(0.1 * i, 0.9, score(-0.1 * i), f"word{i}") for i in range(words)),
    )


def shown(found: LeaveOneOut, top: int = 10) -> str:
    console = Console(width=200, record=True, file=StringIO())
    console.print(leave_one_out_tables(found, top))
    return console.export_text()


def test_tables_have_the_largest_effects_first() -> None:
    text = shown(effects(pair=False))
    assert "0.900" in text
    assert "the text (6 words)" in text
    assert "all neighbours (2)" in text
    assert "written_by → author (1)" in text
    assert "↔ cites, extends paper: a [red]name[/red] </script> $x_1$" in text
    assert text.index("word5") < text.index("word1")
    assert "how far the vector moves" in text
    cut = shown(effects(pair=False), top=1)
    assert "5 more" in cut
    assert "word1" not in cut


def test_tables_of_a_pair_have_signs() -> None:
    text = shown(effects(pair=True))
    assert "-3.2500" in text
    assert "+1.0000" in text
    assert "the score 12.50 of paper: Attention is all you need with author: Jane Doe" in text


@pytest.mark.parametrize("pair", [False, True])
def test_the_figure(tmp_path: Path, pair: bool) -> None:
    found = effects(pair, words=40)
    path = leave_one_out_path(tmp_path, found)
    assert path.parent == tmp_path / "figures"
    assert path.name.startswith("leave-one-out-p1-with-a_1-" if pair else "leave-one-out-p1.png")
    draw_leave_one_out(found, path, top=5)
    check_picture(path, tallest=1200)


def test_the_figure_of_a_node_without_anything(tmp_path: Path) -> None:
    found = LeaveOneOut("runs/small", NamedNode("paper", "p1", TITLE), None, None, (), (), ())
    draw_leave_one_out(found, tmp_path / "figure.png", top=5)
    assert (tmp_path / "figure.png").stat().st_size > 1000
