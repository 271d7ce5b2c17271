"""Names as they fit: a node's name may be a whole abstract."""

from __future__ import annotations


def short(name: str, longest: int) -> str:
    """A name on one line, cut if it has more letters."""
    name = " ".join(name.split())
    return name if len(name) <= longest else name[: longest - 1] + "…"


def cut_to(name: str, inches: float, size: float) -> str:
    """A name on one line, cut if it is wider in a figure's letters of ``size`` points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=size)
    longest = round(40 * inches)  # no letters are as narrow as that
    while longest > 1:
        cut = short(name, longest)
        width, _, _ = text_to_path.get_text_width_height_descent(cut, font, ismath=False)  # in points
        if width <= 72 * inches:
            return cut
        longest = min(longest, len(cut)) - 1
    return short(name, 1)
