"""Effects of leaving out in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from heterformer.explanation.effects import (
    Effect,
    KindEffect,
    LeaveOneOut,
    NeighborEffect,
    WordEffect,
    size_of,
)
from heterformer.explanation.table import NAME, bar
from heterformer.tables import short

ARROWS = {"out": "{} →", "in": "← {}", "both": "↔ {}"}


def leave_one_out_tables(effects: LeaveOneOut, top: int) -> RenderableType:
    """The largest effects of kinds of neighbours, of neighbours and of words."""
    words = sorted(effects.words, key=size_of, reverse=True)
    tables = []
    for title, each in (("kind of input", effects.kinds), ("neighbour", effects.neighbors), ("word", words)):
        if each:
            tables.append(_table(effects, title, each, top))
    return Group(*tables)


def subject(effects: LeaveOneOut) -> str:
    """What changes: a vector, or a score."""
    node = f"{effects.node.node_type}: {short(effects.node.name, NAME)}"
    if effects.pair is None:
        return f"the vector of {node}"
    pair = f"{effects.pair.node_type}: {short(effects.pair.name, NAME)}"
    return f"the score {effects.score:#.4g} of {node} with {pair}"


def _table(effects: LeaveOneOut, what: str, each: Sequence[Effect], top: int) -> Table:
    title = Text(f"Without each {what}: {subject(effects)}", style="table.title")
    meaning = "change: how far the vector moves, relative to its length"
    if effects.pair is not None:
        meaning = "score: with it minus without it; positive supports the pair"
    rest = f"; {len(each) - top:,} more" if len(each) > top else ""
    table = Table(title=title, title_justify="left", caption=meaning + rest, caption_justify="left")
    table.add_column("change" if effects.pair is None else "score")
    table.add_column("cosine" if effects.pair is None else "change", justify="right")
    table.add_column(f"without this {what}")
    largest = max(size_of(effect) for effect in each) or 1.0
    for effect in each[:top]:
        table.add_row(*_measures(effect, largest), Text(label(effect)))
    return table


def _measures(effect: Effect, largest: float) -> tuple[str, str]:
    length = bar(size_of(effect) / largest)
    if effect.score_change is None:
        return f"{effect.change:.3f} {length}", f"{effect.cosine:.4f}"
    return f"{effect.score_change:+.4f} {length}", f"{effect.change:.3f}"


def label(effect: Effect) -> str:
    """What is left out."""
    if isinstance(effect, WordEffect):
        return short(effect.word, NAME)
    if isinstance(effect, NeighborEffect):
        relation = ARROWS[effect.direction].format(effect.relation)
        return f"{relation} {effect.node_type}: {short(effect.name, NAME)}"
    assert isinstance(effect, KindEffect)
    if effect.kind == "relation":
        relation = ARROWS[effect.direction].format(effect.relation)
        return f"{relation} {effect.node_type} ({effect.number:,})"
    whole = {"neighbors": "all neighbours ({:,})", "text": "the text ({:,} words)"}
    return whole[effect.kind].format(effect.number)
