from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heterformer.figures import COLORS, DPI, HIGHLIGHT, colors_of, cut_to, figure, label_ends, spread
from tests.networks import few
from tests.pictures import size_of


def test_a_figure_is_one_column_wide(tmp_path: Path) -> None:
    path = tmp_path / "new" / "figure.png"
    with figure(path, 2.0, columns=2) as (_, axes):
        assert len(axes) == 2
    assert size_of(path) == (round(3.3 * DPI), round(2.0 * DPI))


def test_a_figure_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), figure(tmp_path / "figure.png", 2.0):
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_the_style_is_left_at_the_door(tmp_path: Path) -> None:
    import matplotlib

    before = matplotlib.rcParams["font.size"]
    with figure(tmp_path / "figure.png", 2.0):
        assert matplotlib.rcParams["font.size"] == 7.5
    assert matplotlib.rcParams["font.size"] == before


def test_heterformer_has_the_same_colour_everywhere() -> None:
    assert colors_of(["bert", "heterformer"])["heterformer"] == HIGHLIGHT
    found = colors_of([f"model {i}" for i in range(5)])
    assert len(set(found.values())) == 6
    assert HIGHLIGHT not in COLORS


@few
@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.floats(0.01, 0.2))
def test_labels_do_not_overlap_and_keep_their_order(heights: list[float], gap: float) -> None:
    placed = spread(heights, gap)
    order = sorted(range(len(heights)), key=lambda i: (heights[i], placed[i]))
    for lower, upper in pairwise(order):
        assert placed[upper] - placed[lower] >= gap - 1e-9


def test_labels_that_have_room_stay_where_they_are() -> None:
    assert spread([0.5, 0.1, 0.9], 0.1) == [0.5, 0.1, 0.9]
    assert spread([0.5, 0.5, 0.9], 0.1) == pytest.approx([0.45, 0.55, 0.9])


def test_every_line_is_named_in_its_colour(tmp_path: Path) -> None:
    with figure(tmp_path / "figure.png", 2.0) as (_, (axes,)):
        axes.plot([0, 1], [0, 1])
        label_ends(axes, {"one": 0.2, "two": 0.8}, {"one": "#000000", "two": "#D55E00"})
        assert [(text.get_text(), text.get_color()) for text in axes.texts] == [
            ("one", "#000000"),
            ("two", "#D55E00"),
        ]


def test_a_name_is_on_one_line_and_cut_if_it_is_long() -> None:
    assert cut_to("Jane Doe", 1.0, 7) == "Jane Doe"
    assert cut_to(" two\n  lines ", 1.0, 7) == "two lines"
    assert cut_to("word " * 100, 1.0, 7).startswith("word word")
    assert cut_to("word " * 100, 1.0, 7).endswith("…")


@pytest.mark.parametrize("letter", ["W", "i", "論"])
def test_wide_letters_take_more_room(letter: str) -> None:
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    def width(name: str) -> float:
        return float(text_to_path.get_text_width_height_descent(name, FontProperties(size=7), False)[0])

    cut = cut_to(letter * 300, 1.0, 7)
    assert width(cut) <= 72 < width(cut + 4 * letter)


def test_without_any_room_a_sign_is_left() -> None:
    assert cut_to("Jane Doe", 0.0, 7) == "…"
