from __future__ import annotations

import pytest

from heterformer.figures import cut_to
from heterformer.tables import short


def test_a_name_that_fits_is_left_alone() -> None:
    assert short("Jane Doe", 8) == "Jane Doe"
    assert cut_to("Jane Doe", 1.0, 7) == "Jane Doe"


def test_a_name_is_on_one_line() -> None:
    assert short(" two\n  lines ", 20) == "two lines"
    assert cut_to(" two\n  lines ", 1.0, 7) == "two lines"


def test_a_long_name_is_cut() -> None:
    assert short("Jane Doe", 5) == "Jane…"
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
