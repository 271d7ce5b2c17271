"""The build report: what was read, kept and dropped, with examples."""

from __future__ import annotations

import pytest

from heterformer.network.build.report import BuildReport, Tally
from heterformer.network.build.report_table import build_report
from tests.network.test_describe_table import cells, rendered


def test_a_build_report_shows_what_was_dropped_with_examples() -> None:
    tally = Tally(read=1200, kept=1197)
    tally.drop("unknown paper", 3, ["p1 -> x1", "p2 -> x2"])
    nodes = Tally(read=10, kept=10)
    nodes.note("empty text", 1, ["p7"])
    shown = rendered(build_report(BuildReport({"paper": nodes}, {"cites": tally})))
    assert cells(shown, "node paper")[1:] == ["10", "10", "kept 1: empty text (p7)"]
    dropped = "dropped 3: unknown paper (p1 -> x1; p2 -> x2)"
    assert cells(shown, "relation cites")[1:] == ["1,200", "1,197", dropped]


@pytest.mark.parametrize("odd", ["[/]", "[bold]x", "a:key:b", "\\[x]"])
def test_what_the_user_wrote_is_shown_as_it_is(odd: str) -> None:
    tally = Tally(read=1)
    tally.drop("unknown paper", 1, [f"p1 -> {odd}"])
    assert f"(p1 -> {odd})" in rendered(build_report(BuildReport({}, {"cites": tally})))
