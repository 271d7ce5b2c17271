"""The map as a picture for a paper: one column wide, a legend below."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np

from heterformer.figures import COLUMN, cut_to, figure
from heterformer.maps.core import NodeMap
from heterformer.maps.style import MARKERS, Key, colors_of_groups, legend_of, markers_of, shortened

HEIGHT = 2.75  # inches, of the map itself
LINE, LETTER, MARGIN = 0.16, 0.056, 0.3  # inches: a line of the legend, a letter, a marker with its margins
CAPTION, CAPTION_LETTERS, CAPTION_LINE = "#666666", 74, 0.1  # its colour, letters of a line, inches of one
FEW = 6  # names in a legend, which may be long; those of more stand in two columns at least
SIZES = (2.5, 16.0)  # square points of a marker: of thousands of nodes, of a few
CENTER_SAMPLE, CENTER_LETTERS = 400, 24  # points that decide where a class is named, and letters of its name
DENSE = 0.1  # of a class, that is around its name
RIM = 0.06  # of a marker's width, in white around it: a heap of nodes is no blot
INK = 13_000  # square points of all markers in between
PARTS = 40  # that are drawn one after the other, so that no type lies on top of the others
SHAPES = dict(zip(MARKERS, "osD^vPX", strict=True))
AREAS = {"square": 0.8, "diamond": 0.75, "plus": 1.3, "cross": 1.3}  # so that none seems larger


def draw_map_figure(node_map: NodeMap, path: Path) -> Path:
    """Write a PNG: colours tell groups, markers tell types if there are several."""
    keys = _short(legend_of(node_map))
    columns = max(1, min(4, len(keys), int(COLUMN / _width(keys))))
    caption = wrap(node_map.caption, CAPTION_LETTERS)
    height = HEIGHT + -(-len(keys) // columns) * LINE + len(caption) * CAPTION_LINE + 0.1
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # a box in the legend says as much
        with figure(path, height, palette=True) as (drawing, (axes,)):
            _draw_points(axes, node_map)
            names = _name_classes(axes, node_map)
            title = f"{node_map.network}: {node_map.contents}"
            drawing.suptitle(cut_to(title, COLUMN - 0.1, 7.5), fontsize=7.5)
            axes.set_title("\n".join(caption), fontsize=6, color=CAPTION)
            axes.set_axis_off()
            axes.set_aspect("equal", adjustable="datalim")
            axes.margins(0.03)
            _draw_legend(drawing, keys, columns)
            _move_apart(drawing, names)
    return path


def _draw_points(axes: Any, node_map: NodeMap) -> None:
    colors, markers = colors_of_groups(node_map.groups), markers_of(node_map.types)
    size = float(np.clip(INK / len(node_map.points), *SIZES))
    part = -(-len(node_map.points) // PARTS)
    for start in range(0, len(node_map.points), part):
        for node_type, marker in markers.items():
            points = [p for p in node_map.points[start : start + part] if p.node_type == node_type]
            axes.scatter(
                [p.x for p in points],
                [p.y for p in points],
                s=size * AREAS.get(marker, 1.0),
                c=[colors[p.group].light for p in points],
                marker=SHAPES[marker],
                linewidths=RIM * size**0.5,
                edgecolors="white",
            )


def class_centers(node_map: NodeMap) -> dict[str, tuple[float, float]]:
    """Where each class is densest: at the point with a tenth of the class closest around it."""
    centers = {}
    for group in node_map.groups:
        places = np.array([(p.x, p.y) for p in node_map.points if p.group == group])
        if group.kind == "class" and len(places):
            sample = places[:: max(1, len(places) // CENTER_SAMPLE)]
            apart = np.linalg.norm(sample[:, None] - sample[None], axis=-1)
            x, y = sample[np.quantile(apart, DENSE, axis=1).argmin()].tolist()
            centers[group.name] = (x, y)
    return centers


def _name_classes(axes: Any, node_map: NodeMap) -> list[Any]:
    from matplotlib.patheffects import withStroke

    rim = [withStroke(linewidth=1.6, foreground="white")]
    names, place_of_text = [], {"xytext": (0, 0), "textcoords": "offset points"}
    for name, place in class_centers(node_map).items():
        text = axes.annotate(
            "-", place, ha="center", va="center", fontsize=6.5, path_effects=rim, **place_of_text
        )
        text.set_parse_math(False)
        text.set_text(shortened(name, CENTER_LETTERS))
        names.append(text)
    return names


def _move_apart(drawing: Any, names: Sequence[Any]) -> None:
    """Move names that would cover another up or down, and those that would leave the figure inwards."""
    drawing.canvas.draw()  # now places are known
    points, placed = 72 / drawing.dpi, list[Any]()
    for text in sorted(names, key=lambda text: -text.get_window_extent().y0):
        box, right = text.get_window_extent(), drawing.bbox.x1
        across = max(0.0, -box.x0) - max(0.0, box.x1 - right)
        box = box.translated(across, 0)
        steps = (sign * number * box.height / 4 for number in range(8 * len(names) + 1) for sign in (-1, 1))
        up = next((up for up in steps if not any(box.translated(0, up).overlaps(o) for o in placed)), 0.0)
        placed.append(box.translated(0, up))
        text.xyann = (across * points, up * points)


def _short(keys: Sequence[Key]) -> list[Key]:
    """With names that fit."""
    width = COLUMN if len(keys) <= FEW else COLUMN / 2
    return [replace(key, name=shortened(key.name, int((width - MARGIN) / LETTER))) for key in keys]


def _width(keys: Sequence[Key]) -> float:
    return max(len(key.name) for key in keys) * LETTER + MARGIN


def _draw_legend(drawing: Any, keys: Sequence[Key], columns: int) -> None:
    from matplotlib.lines import Line2D

    style: dict[str, Any] = {"linestyle": "none", "markersize": 4.5, "markeredgewidth": 0}
    markers = [Line2D([], [], color=key.color.light, marker=SHAPES[key.marker], **style) for key in keys]
    legend = drawing.legend(
        markers,
        ["-"] * len(keys),
        loc="outside lower center",
        ncols=columns,
        frameon=False,
        fontsize=7,
        handletextpad=0.1,
        columnspacing=0.9,
        labelspacing=0.25,
        borderaxespad=0.1,
    )
    # As they are: matplotlib may drop labels that begin with '_' and takes '$x$' for mathematics.
    for text, key in zip(legend.get_texts(), keys, strict=True):
        text.set_parse_math(False)
        text.set_text(key.name)
