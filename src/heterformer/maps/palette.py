"""The colours of maps: of classes and types, of what is grey, of numbers."""

from __future__ import annotations

from typing import NamedTuple

from heterformer.figures import COLORS, HIGHLIGHT


class Color(NamedTuple):
    """A colour on white, and one for the same on black."""

    light: str
    dark: str


# The figures' palette and a wine red: under each kind of colour blindness no two get closer than its own
# closest pair. On black, what is too dark gives way to white and to the palette's yellow.
CLASSES = (
    Color(COLORS[0], "#3A9BDC"),
    Color(HIGHLIGHT, "#EE7733"),
    Color(COLORS[1], "#17B88B"),
    *(Color(color, color) for color in COLORS[2:5]),
    Color("#882255", "#F0E442"),
    Color(COLORS[5], "#FFFFFF"),
)
OTHER, UNLABELLED = Color("#C8C8C8", "#5C5C5C"), Color("#E2E2E2", "#3C3C3C")
TYPE = Color("#555555", "#BBBBBB")
# Of numbers, from small to large: one hue, ever farther from the background.
RAMP = tuple(
    Color(light, dark)
    for light, dark in zip(
        ("#C6DBEF", "#A3C8E2", "#79B1D7", "#539BCA", "#3480B9", "#1C65A6", "#0C4C8A", "#08306B"),
        ("#1F3F66", "#285787", "#3370A6", "#4A8CC0", "#6BA6D3", "#90C0E3", "#B7D7EF", "#E3F0FA"),
        strict=True,
    )
)
