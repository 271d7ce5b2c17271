"""The map's page from end to end: search, Enter, tips, and a search box that stays where it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from heterformer.maps.core import NodeMap
from heterformer.maps.page import write_map_page
from tests.maps.maps import GREY, classes, random_map


def drawn_map() -> NodeMap:
    """Forty nodes, ten of each group; the first of 'a' has the label 'b', too."""
    found = random_map(40, [*classes("a", "b"), *GREY])
    first, *others = found.points
    near = {"text": "What it is about.", "neighbors": ("Jane Doe", "ACL"), "degree": 7}
    return replace(found, points=(replace(first, others=(found.groups[1],), **near), *others))


@pytest.fixture
def page(browser: Any, tmp_path: Path) -> Iterator[Any]:
    path = write_map_page(drawn_map(), tmp_path / "map.html")
    context = browser.new_context(viewport={"width": 1000, "height": 700})
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(path.as_uri())
    yield page
    context.close()
    assert problems == []


def wait_for_tip(page: Any, name: str) -> None:
    """Until the tip of this node is drawn, which it is in the next frame."""
    page.wait_for_function("(name) => !tip.hidden && tip.children[0].textContent === name", arg=name)


def test_enter_zooms_to_the_exact_match(page: Any) -> None:
    box, before = page.locator("#query").bounding_box(), page.evaluate("view.scale")
    page.fill("#query", "node number 3")  # which number 30 contains
    page.press("#query", "Enter")
    wait_for_tip(page, "Node number 3")
    assert page.evaluate("view.scale") > before
    assert page.evaluate("[xs[pointed] === view.x, ys[pointed] === view.y]") == [True, True]
    assert page.locator("#query").bounding_box() == box


def test_the_next_match_comes_with_the_next_enter(page: Any) -> None:
    page.fill("#query", "node number 3")
    for name in ("Node number 3", "Node number 30"):
        page.press("#query", "Enter")
        wait_for_tip(page, name)
    page.press("#query", "Shift+Enter")
    wait_for_tip(page, "Node number 3")
    assert page.evaluate("place") == 0


def test_names_are_written_when_zoomed_in(page: Any) -> None:
    page.evaluate(
        "() => { window.written = []; const plain = pen.fillText.bind(pen);"
        " pen.fillText = (text, ...rest) => { written.push(text); plain(text, ...rest); }; redraw(); }"
    )
    page.wait_for_function("() => !awaited")
    assert page.evaluate("written") == []
    page.fill("#query", "node number 7")
    page.press("#query", "Enter")
    page.wait_for_function("() => written.includes('Node number 7')")


def test_a_node_with_two_labels_counts_for_both_and_is_hidden_with_both(page: Any) -> None:
    keys = page.locator("#legend button")
    assert keys.locator(".number").all_inner_texts() == ["10", "11", "10", "10"]
    double = page.evaluate("nodes.findIndex((node) => (node[OTHERS] || []).length > 0)")
    shown = []
    for key in (0, 1):
        keys.nth(key).click()
        shown.append(page.evaluate("(i) => [shown[i], shown.reduce((sum, one) => sum + one, 0)]", double))
    assert shown == [[1, 31], [0, 20]]


def test_a_point_under_the_mouse_has_a_tip(page: Any) -> None:
    x, y = page.evaluate("[toScreenX(5), toScreenY(5)]")
    canvas = page.locator("#points").bounding_box()
    page.mouse.move(canvas["x"] + x, canvas["y"] + y)
    page.wait_for_function("() => !tip.hidden")
    assert page.evaluate("pointed") >= 0
    assert page.locator("#tip strong").inner_text().startswith("Node number")


def test_a_tip_has_the_text_and_some_neighbours(page: Any) -> None:
    page.fill("#query", page.evaluate("nodes.find((node) => (node[NEAR] || []).length)[NAME]"))
    page.press("#query", "Enter")
    page.wait_for_function("() => !tip.hidden")
    told = page.locator("#tip").inner_text()
    assert "What it is about." in told
    assert "Jane Doe" in told
    assert "ACL" in told
