"""How figures look: one column wide, colours that colour-blind people tell apart, labels beside the lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from heterformer.files import replace_file
from heterformer.tables import short

COLUMN = 3.3  # inches
DPI = 200
# Okabe and Ito's palette, without the yellow that is too light for lines.
HIGHLIGHT, GREY = "#D55E00", "#999999"
COLORS = ("#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
STYLE = {
    "font.size": 7.5,
    "axes.titlesize": 8,
    "axes.labelsize": 7.5,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.edgecolor": "#444444",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "lines.linewidth": 1.4,
    "lines.markersize": 3.5,
    "text.parse_math": False,  # a name may hold a dollar
}


@contextmanager
def canvas(path: Path, height: float, palette: bool = False) -> Iterator[Any]:
    """A figure without axes yet; it is written as PNG when the block ends.

    With a ``palette`` (of 256 colours) thousands of points take a third of the space.
    """
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        drawing = Figure(figsize=(COLUMN, height), dpi=DPI, layout="constrained")
        FigureCanvasAgg(drawing)
        yield drawing
        path.parent.mkdir(parents=True, exist_ok=True)
        with replace_file(path) as partial:
            drawing.savefig(partial, format="png")
            if palette:
                _with_palette(partial)


def _with_palette(path: Path) -> None:
    from PIL import Image

    with Image.open(path) as picture:
        few = picture.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    few.save(path, format="png", optimize=True, dpi=(DPI, DPI))


@contextmanager
def figure(
    path: Path, height: float, columns: int = 1, palette: bool = False
) -> Iterator[tuple[Any, list[Any]]]:
    """A figure with its axes side by side."""
    with canvas(path, height, palette) as drawing:
        axes = drawing.subplots(1, columns, squeeze=False)
        yield drawing, list(axes[0])


def colors_of(names: Sequence[str]) -> dict[str, str]:
    """A colour for each name; Heterformer's is always the same."""
    others = [name for name in names if name != "heterformer"]
    return {name: COLORS[i % len(COLORS)] for i, name in enumerate(others)} | {"heterformer": HIGHLIGHT}


def label_ends(axes: Any, ends: Mapping[str, float], colors: Mapping[str, str]) -> None:
    """Write each line's name at the right, at the height of its end, no name over another."""
    low, high = axes.get_ylim()
    line = (high - low) * 0.075  # of text, in a figure of about 2 inches
    heights = spread([ends[name] for name in ends], line)
    for name, height in zip(ends, heights, strict=True):
        axes.annotate(
            name,
            (1.02, height),
            xycoords=axes.get_yaxis_transform(),
            color=colors[name],
            va="center",
            fontsize=7,
            annotation_clip=False,
        )


def spread(heights: Sequence[float], gap: float) -> list[float]:
    """The same heights, moved as little as it takes to keep neighbours ``gap`` apart."""
    order = sorted(range(len(heights)), key=lambda i: heights[i])
    groups: list[list[int]] = []
    centers: list[float] = []
    for i in order:
        groups.append([i])
        centers.append(heights[i])
        while len(groups) > 1 and _top(groups[-2], centers[-2], gap) + gap > _bottom(
            groups[-1], centers[-1], gap
        ):
            last, _ = groups.pop(), centers.pop()
            groups[-1] += last
            centers[-1] = sum(heights[j] for j in groups[-1]) / len(groups[-1])
    placed = list(heights)
    for group, center in zip(groups, centers, strict=True):
        for k, i in enumerate(group):
            placed[i] = _bottom(group, center, gap) + k * gap
    return placed


def _bottom(group: Sequence[int], center: float, gap: float) -> float:
    return center - gap * (len(group) - 1) / 2


def _top(group: Sequence[int], center: float, gap: float) -> float:
    return center + gap * (len(group) - 1) / 2


def cut_to(name: str, inches: float, size: float) -> str:
    """A name on one line, cut if it is wider in a figure's letters of ``size`` points."""
    longest = round(40 * inches)  # no letters are as narrow as that
    while longest > 1:
        cut = short(name, longest)
        if text_width(cut, size) <= inches:
            return cut
        longest = min(longest, len(cut)) - 1
    return short(name, 1)


def text_width(text: str, size: float) -> float:
    """The inches that a text takes in a figure's letters of ``size`` points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    width, _, _ = text_to_path.get_text_width_height_descent(text, FontProperties(size=size), ismath=False)
    return float(width) / 72
