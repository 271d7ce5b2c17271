"""Tables on screen and in a page."""

from __future__ import annotations

import io

from rich.console import Console

from heterformer.tables import Sheet, four_digits, listed, short

SHEET = Sheet(
    "figures",
    ("relation", "PREC"),
    (("cites", "0.5000"), ("a|b [bold]", "1.0000")),
    "of [1] pair",
    text_columns=1,
)


def test_markdown_has_every_cell_and_keeps_bars_apart() -> None:
    assert SHEET.markdown().splitlines() == [
        "| relation | PREC |",
        "| --- | ---: |",
        "| cites | 0.5000 |",
        "| a\\|b [bold] | 1.0000 |",
        "",
        "of [1] pair",
    ]


def test_the_screen_shows_words_as_they_are() -> None:
    output = io.StringIO()
    Console(file=output, width=60).print(SHEET.table())
    shown = output.getvalue()
    assert shown.splitlines()[0].strip() == "figures"
    assert "a|b [bold]" in shown
    assert "of [1] pair" in shown


def test_figures_below_zero_have_a_sign_and_no_zero() -> None:
    assert [four_digits(x) for x in (0.5, 1.0, -0.0224, -0.00001, 0.0)] == [
        ".5000",
        "1.0000",
        "-.0224",
        ".0000",
        ".0000",
    ]


def test_names_in_a_sentence() -> None:
    assert [listed(names) for names in ([], ["A"], ["A", "B"], ["A", "B", "C"])] == [
        "",
        "A",
        "A and B",
        "A, B and C",
    ]


def test_a_name_is_on_one_line_and_cut_if_it_is_long() -> None:
    assert short("Jane Doe", 8) == "Jane Doe"
    assert short(" two\n  lines ", 20) == "two lines"
    assert short("Jane Doe", 5) == "Jane…"
