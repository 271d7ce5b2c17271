"""Effects of leaving out as a figure: bars for kinds and neighbours, the text with its words in colour."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from heterformer.explanation.effects import Effect, LeaveOneOut, WordEffect, size_of
from heterformer.explanation.effects_table import label
from heterformer.explanation.figure import SMALL, any_letters, safe_name
from heterformer.figures import COLORS, COLUMN, HIGHLIGHT, canvas, cut_to, text_width

ROW, LINE, HEADING = 0.2, 0.13, 0.22  # inches of a bar with its name, of a line of words, of a title
ROOM = COLUMN - 0.15  # inches of a line
SUPPORTS, SPEAKS_AGAINST = COLORS[0], HIGHLIGHT


def leave_one_out_path(run: Path, effects: LeaveOneOut) -> Path:
    """Where the figure is unless the user says it."""
    pair = "" if effects.pair is None else f"-with-{safe_name(effects.pair.id)}"
    return run / "figures" / f"leave-one-out-{safe_name(effects.node.id)}{pair}.png"


def draw_leave_one_out(effects: LeaveOneOut, path: Path, top: int) -> None:
    """Kinds of neighbours, the ``top`` neighbours, and the words in the order of the text."""
    parts: list[tuple[str, Sequence[Effect]]] = [("kind of input", effects.kinds)]
    parts += [("neighbour", effects.neighbors[:top])] if effects.neighbors else []
    lines = _lines(effects.words)
    heights = [HEADING + ROW * len(each) for _, each in parts] + [HEADING + LINE * (len(lines) + 1)]
    with any_letters(), canvas(path, 2 * HEADING + sum(heights)) as drawing:
        drawing.suptitle("\n".join(_title(effects)), fontsize=7.5)
        *upper, lower = drawing.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
        for part, (what, each) in zip(upper, parts, strict=True):
            _draw_bars(part.subplots(), f"without each {what}", each)
        _draw_words(lower.subplots(), lines)


def _title(effects: LeaveOneOut) -> list[str]:
    node = cut_to(effects.node.name, COLUMN - 0.1, 7.5)
    if effects.pair is None:
        return [node, "how far its vector moves (share of its length)"]
    return [node, cut_to(f"score {effects.score:.3g} with {effects.pair.name}", COLUMN - 0.1, 7.5)]


def _draw_bars(axis: Any, title: str, effects: Sequence[Effect]) -> None:
    """A line per effect: what is left out, and under it a thin bar."""
    largest = max((size_of(effect) for effect in effects), default=0.0) or 1.0
    for place, effect in enumerate(effects):
        name = cut_to(label(effect), ROOM - 0.45, SMALL)
        axis.text(0, place + 0.55, name, va="bottom", fontsize=SMALL)
        axis.text(largest, place + 0.55, _number(effect), va="bottom", ha="right", fontsize=SMALL)
        axis.barh(place + 0.74, size_of(effect), 0.28, color=_color(effect))
    axis.set(xlim=(0, largest), ylim=(max(1, len(effects)), 0))
    axis.set_title(title, loc="left", fontsize=7)
    axis.set_axis_off()


def _number(effect: Effect) -> str:
    return f"{effect.change:.1%}" if effect.score_change is None else f"{effect.score_change:+.2g}"


def _color(effect: Effect) -> str:
    return SPEAKS_AGAINST if (effect.score_change or 0) < 0 else SUPPORTS


Line = list[tuple[float, float, WordEffect]]  # where a word begins, its width, and the word


def _lines(words: Sequence[WordEffect]) -> list[Line]:
    """The words as lines of text, in inches."""
    lines: list[Line] = [[]]
    place, space = 0.0, 0.05
    for word in words:
        width = min(text_width(word.word, SMALL), ROOM)
        if lines[-1] and place + width > ROOM:
            lines.append([])
            place = 0.0
        lines[-1].append((place, width, word))
        place += width + space
    return lines


def _draw_words(axis: Any, lines: Sequence[Line]) -> None:
    """The text; the stronger a word's colour, the larger its effect."""
    from matplotlib.patches import Rectangle

    largest = max((size_of(word) for line in lines for *_, word in line), default=0.0) or 1.0
    for number, line in enumerate(lines):
        for place, width, word in line:
            strength = 0.75 * size_of(word) / largest
            box = Rectangle(
                (place - 0.02, number + 0.1), width + 0.04, 0.8, color=_color(word), alpha=strength, lw=0
            )
            axis.add_patch(box)
            axis.text(place, number + 0.5, cut_to(word.word, ROOM, SMALL), va="center", fontsize=SMALL)
    axis.set(xlim=(0, ROOM), ylim=(max(1, len(lines)), 0))
    axis.set_title(
        "without each word (the stronger the colour, the larger the effect)", loc="left", fontsize=7
    )
    axis.set_axis_off()
