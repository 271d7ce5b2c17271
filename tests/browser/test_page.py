"""The explorer in a browser, from end to end. Run by 'make test-browser'."""

from __future__ import annotations

import csv
import io
import json
import re
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, quote

import httpx
import pytest

from tests.browser.conftest import HOSTILE, PAPERS, SECONDS, Opened


def ready(page: Any, path: str = "/") -> Any:
    """Go there and wait for the map."""
    page.goto(path)
    page.wait_for_selector("body[data-map=ready]")
    return page


def query(page: Any) -> dict[str, list[str]]:
    """What the address says, asked of the page: Playwright hears of it a moment later."""
    return parse_qs(page.evaluate("location.search.slice(1)"))


def results(page: Any) -> list[str]:
    page.wait_for_selector("section.results ol.ranked > li")
    return [text.strip() for text in page.locator("section.results ol.ranked > li .head a").all_inner_texts()]


def until(page: Any, expression: str, argument: Any = None) -> None:
    """Wait for it. Playwright's own ``wait_for_function`` needs what the content security policy forbids."""
    eventually(page, lambda: bool(page.evaluate(expression, argument)))


def eventually(page: Any, condition: Callable[[], bool]) -> None:
    """Wait for it: an answer takes the place of the one before it some time after a click."""
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end, "it never came true"
        page.wait_for_timeout(50)


def idle(page: Any) -> None:
    """Wait until the panel shows what the address says."""
    until(page, "!document.querySelector('#content').hasAttribute('aria-busy')")


def suggested(page: Any, label: str, letters: str, name: str) -> None:
    """Type into a box of nodes until the first it suggests is the one; earlier letters may suggest others."""
    page.get_by_label(label).press_sequentially(letters)
    first = page.locator(".suggestions li .name").first
    eventually(page, lambda: first.count() == 1 and name in first.inner_text())


def test_the_first_page_says_what_there_is(page: Any) -> None:
    ready(page)
    idle(page)
    assert page.locator("#content h1").inner_text() == f"{HOSTILE} network"
    assert str(PAPERS) in page.locator("dl.facts").inner_text()
    eventually(page, lambda: page.locator("#legend .key").count() >= 3)
    assert page.evaluate("document.querySelector('#points').getContext('webgl2') !== null")


def test_search_shows_ranked_results_with_support_and_marks_them(page: Any) -> None:
    ready(page)
    page.fill("#q", "protein enzyme")
    page.keyboard.press("Enter")
    found = results(page)
    assert len(found) == 20
    assert query(page)["q"] == ["protein enzyme"]
    assert page.locator("p.support a").count() > 0
    page.wait_for_selector("body[data-marks='20']")
    scores = [float(text) for text in page.locator(".ranked .score").all_inner_texts()]
    assert scores == sorted(scores, reverse=True)


def test_results_are_those_of_the_server(page: Any, address: str) -> None:
    ready(page, "/?q=market+inflation")
    answer = httpx.post(
        f"{address}/search", json={"text": "market inflation", "top": 20}, trust_env=False
    ).json()
    assert results(page) == [" ".join(hit["name"].split()) for hit in answer["rankings"][0]["hits"]]


def test_neighbours_are_chips_that_can_be_removed(page: Any) -> None:
    ready(page, "/?q=market")
    before = results(page)
    page.click("button.filter")
    suggested(page, "Add a neighbour", "Author 1", "Author 1")
    page.keyboard.press("Enter")
    page.wait_for_selector(".chip >> text=Author 1")
    assert query(page)["near"] == ["author:Author 1"]
    eventually(page, lambda: results(page) != before)
    page.click("[aria-label='Remove Author 1']")
    page.wait_for_selector(".chips .chip", state="detached")
    assert "near" not in query(page)
    eventually(page, lambda: results(page) == before)


def test_chips_of_a_link_have_names(page: Any) -> None:
    ready(page, "/?q=market&near=paper:p4")
    eventually(page, lambda: "number 4" in page.locator("#search .chip").inner_text())
    assert "90 papers · 10 authors" in page.locator("#facts").inner_text()


def test_a_filter_leaves_only_what_meets_it(page: Any, opened: Opened) -> None:
    ready(page, "/?q=grammar")
    page.click("button.filter")
    page.fill("#where", "year >= 2018")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=/best of \\d papers/")
    found = results(page)
    assert 0 < len(found) < 20
    assert all(int(re.findall(r"number (\d+)", name)[0]) % 20 >= 18 for name in found)
    opened.allowed = {400, 422}
    page.fill("#where", "year >=")
    page.keyboard.press("Enter")
    page.wait_for_selector(".problem")
    assert "filter" in page.locator(".problem").inner_text().lower()


def test_types_to_find(page: Any) -> None:
    ready(page, "/?q=enzyme&types=author&types=paper")
    page.wait_for_selector("ol.ranked >> nth=1")
    assert page.locator("#content h2").count() == 2
    assert "author" in page.locator("#content").inner_text()


def test_a_result_opens_the_nodes_page(page: Any) -> None:
    ready(page, "/?q=enzyme")
    name = results(page)[0]
    page.locator("ol.ranked > li .head a").first.click()
    page.wait_for_selector("article.node-page")
    assert page.locator("#content h1").inner_text().strip() == name
    page.wait_for_selector("text=Nearest nodes")
    text = page.locator("article.node-page").inner_text()
    assert "year" in text
    page.wait_for_selector(".relation >> text=written_by")
    page.wait_for_selector(".relation >> text=cites")
    page.wait_for_selector("article .ranked li")
    page.go_back()
    assert results(page)[0] == name


def test_why_shows_effects_of_words_and_neighbours(page: Any, address: str) -> None:
    ready(page, "/?node=paper:p5")
    page.click("#why")
    page.wait_for_selector(".why .words span")
    body = {"node": "p5", "type": "paper"}
    effects = httpx.post(f"{address}/explain", json=body, timeout=60, trust_env=False).json()["leave_one_out"]
    shown = page.locator(".why .words >> nth=0").locator("span").all_inner_texts()
    assert shown == [each["word"] for each in effects["words"]]
    names = page.locator(".effects .shares >> nth=1").locator("a").all_inner_texts()
    assert names[0].split()[:3] == effects["neighbors"][0]["name"].split()[:3]


def test_why_shows_what_the_model_looked_at(page: Any, address: str) -> None:
    ready(page, "/?node=paper:p5&why=1")
    page.click(".attention summary")
    body = {"node": "p5", "type": "paper"}
    answer = httpx.post(f"{address}/explain", json=body, timeout=60, trust_env=False).json()
    words = [token for token in answer["tokens"] if not token.startswith("[")]
    assert page.locator(".attention .words span").all_inner_texts() == words
    near = [each for kind in answer["virtual_tokens"] for each in kind["neighbors"][:10]]
    assert page.locator(".attention .shares a").count() == len(near) > 0
    shares = page.locator(".attention .shares .score").all_inner_texts()
    assert shares == [f"{100 * each['share']:.{1 if 0 < each['share'] < 0.1 else 0}f} %" for each in near]


def test_a_textless_node_is_explained_by_its_closest_neighbours(page: Any) -> None:
    ready(page, "/?node=author:Author 1")
    page.click("#why")
    page.wait_for_selector(".why .shares li")
    assert "no text" in page.locator(".why").inner_text()


def test_the_network_expands_by_a_click(page: Any) -> None:
    ready(page, "/?node=paper:p4")
    page.get_by_role("button", name="Network").first.click()
    page.wait_for_selector("body[data-network]")
    before = int(page.get_attribute("body", "data-network"))
    assert before > 3
    assert query(page)["open"] == ["paper:p4"]
    box = page.locator("#network").bounding_box()
    until(page, "'somewhere' in document.querySelector('#network').dataset")

    def place() -> tuple[float, float]:
        """Where a neighbour is drawn, which the canvas does not tell."""
        x, y = page.evaluate("document.querySelector('#network').dataset.somewhere.split(',').map(Number)")
        return box["x"] + x, box["y"] + y

    def points() -> bool:
        """Whether the pointer has changed over it."""
        page.mouse.move(box["x"] + 5, box["y"] + 5)
        page.mouse.move(*place())
        return bool(page.evaluate("document.querySelector('#network').classList.contains('pointing')"))

    eventually(page, points)
    page.mouse.click(*place())
    until(page, "before => Number(document.body.dataset.network) > before", before)
    assert len(query(page)["open"]) == 2
    assert query(page)["node"] == [query(page)["open"][1]]


def test_a_click_on_the_map_opens_the_node(page: Any, address: str) -> None:
    ready(page)
    places = httpx.post(
        f"{address}/map/places", json={"nodes": [{"type": "paper", "id": "p7"}]}, trust_env=False
    ).json()["places"]
    x, y = page.evaluate(
        "([x, y]) => window.heterformerMap.camera.toScreen(x / 65535, y / 65535)",
        [places[0]["x"], places[0]["y"]],
    )
    box = page.locator("#points").bounding_box()
    page.mouse.move(box["x"] + x, box["y"] + y)
    page.wait_for_selector("#tip:not([hidden])")
    page.mouse.click(box["x"] + x, box["y"] + y)
    page.wait_for_selector("article.node-page")
    assert query(page)["node"][0].startswith(("paper:", "author:"))


def test_two_nodes_side_by_side(page: Any) -> None:
    ready(page, "/?node=paper:p4")
    page.get_by_role("button", name="Compare").click()
    suggested(page, "Compare with", "p7", "number 7")
    page.keyboard.press("Enter")
    page.wait_for_selector("article.compare")
    assert query(page)["with"] == ["paper:p7"]
    assert page.locator(".columns section").count() == 2
    assert "cosine" in page.locator(".verdict").inner_text()
    page.click("#why")
    page.wait_for_selector(".effects")


def test_colours_by_a_column(page: Any) -> None:
    ready(page)
    page.select_option("#color", "year")
    page.wait_for_selector("#legend .keys.numbers")
    assert query(page)["color"] == ["year"]
    assert "2000" in page.locator("#legend").inner_text()
    page.locator("#legend .key").first.click()
    page.wait_for_selector("#legend .key[aria-pressed=false]")


def test_names_stay_text(page: Any) -> None:
    """The teardown checks that nothing ran and that no element came of data."""
    for path in (
        f"/?node={quote(f'paper:{HOSTILE}')}",
        f"/?node={quote(f'author:{HOSTILE}')}",
        f"/?q={quote(HOSTILE)}",
        f"/?q=x&near={quote(f'author:{HOSTILE}')}",
        f"/?node=paper:p1&with={quote(f'paper:{HOSTILE}')}",
        f"/?node={quote(f'author:{HOSTILE}')}&view=network&open={quote(f'author:{HOSTILE}')}",
    ):
        ready(page, path)
        idle(page)
        page.wait_for_load_state("networkidle")
        assert page.locator(".problem").count() == 0, path
    ready(page, f"/?node={quote(f'author:{HOSTILE}')}")
    page.wait_for_selector("#content h1")
    assert page.locator("#content h1").inner_text() == HOSTILE
    eventually(page, lambda: page.locator("#legend").inner_text().count("</script>") == 1)


def test_everything_by_keyboard(page: Any) -> None:
    ready(page)
    page.keyboard.press("/")
    page.keyboard.type("inflation")
    page.keyboard.press("Enter")
    found = results(page)
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("j")
    eventually(page, lambda: page.evaluate("document.activeElement.innerText.trim()") == found[1])
    page.keyboard.press("Enter")
    page.wait_for_selector("article.node-page")
    page.keyboard.press("n")
    page.wait_for_selector("body[data-network]")
    assert query(page)["view"] == ["network"]
    before = int(page.get_attribute("body", "data-network"))
    first = query(page)["open"]
    page.wait_for_selector(".relation li a.node")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    eventually(page, lambda: query(page)["node"] != first)
    assert query(page)["open"] == first
    second = query(page)["node"]
    page.keyboard.press("n")  # adds the neighbours of the node that is shown now
    eventually(page, lambda: query(page)["open"] == first + second)
    until(page, "before => Number(document.body.dataset.network) > before", before)
    page.keyboard.press("Escape")
    eventually(page, lambda: "view" not in query(page))
    idle(page)
    page.keyboard.press("e")
    page.wait_for_selector(".why .words")
    page.keyboard.press("Escape")
    eventually(page, lambda: "node" not in query(page))
    page.keyboard.press("?")
    page.wait_for_selector("dialog[open]")
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog", state="detached")
    page.focus("#points")
    before = page.evaluate("window.heterformerMap.camera.scale")
    page.keyboard.press("+")
    until(page, "before => window.heterformerMap.camera.scale > before", before)


def test_the_address_is_the_state(page: Any) -> None:
    ready(page, "/?q=grammar&where=year+%3E%3D+2010&color=note&node=paper:p3")
    page.wait_for_selector("article.node-page")
    assert page.input_value("#q") == "grammar"
    assert page.input_value("#where") == "year >= 2010"
    assert page.input_value("#color") == "note"
    page.click("a.back")
    assert results(page)
    assert "node" not in query(page)
    idle(page)
    page.go_back()
    page.wait_for_selector("article.node-page")


CAMERA = "(({ x, y, zoom }) => [x, y, zoom])(heterformerMap.camera)"


def test_where_the_map_was_moved_to_is_in_the_link(page: Any, opened: Opened) -> None:
    ready(page)
    idle(page)
    assert "at" not in query(page)  # the whole map
    page.get_by_role("button", name="Zoom in").click()
    eventually(page, lambda: "at" in query(page))
    page.focus("#points")
    page.keyboard.press("ArrowLeft")
    eventually(page, lambda: moved_to(page) == approx(page.evaluate(CAMERA)))
    place = page.evaluate(CAMERA)
    other = opened.context.new_page()
    ready(other, page.evaluate("location.pathname + location.search"))
    idle(other)
    assert other.evaluate(CAMERA) == approx(place)
    assert moved_to(other) == approx(place)
    other.close()
    page.goto(page.evaluate("location.search") + "&q=protein")  # marks are not gone to instead
    page.wait_for_selector("body[data-marks='20']")
    assert page.evaluate(CAMERA) == approx(place)
    page.get_by_role("button", name="Show all").click()
    eventually(page, lambda: "at" not in query(page))


def test_another_place_does_not_keep_the_last_ones_map(page: Any) -> None:
    ready(page, "/?q=protein&at=0.1,0.1,20&why=1")
    results(page)
    assert page.evaluate(CAMERA) == approx([0.1, 0.1, 20])
    page.locator("ol.ranked > li .head a").first.click()
    page.wait_for_selector("article.node-page")
    eventually(page, lambda: moved_to(page) not in ([], approx([0.1, 0.1, 20])))  # to where the node is
    assert "why" not in query(page)
    page.go_back()
    eventually(page, lambda: page.evaluate(CAMERA) == approx([0.1, 0.1, 20]))


def test_a_place_that_is_none_is_ignored(page: Any) -> None:
    for at in ("1,2", "a,b,c", "0.1,0.1,Infinity", "1,1,1,1", ",,"):
        ready(page, f"/?at={at}")
        idle(page)
        assert page.evaluate("heterformerMap.camera.isWhole"), at


def moved_to(page: Any) -> list[float]:
    """What the address says of the map."""
    return [float(number) for at in query(page).get("at", []) for number in at.split(",")]


def approx(place: list[float]) -> Any:
    return pytest.approx(place, rel=1e-3, abs=1e-4)


def test_an_open_explanation_is_in_the_link(page: Any) -> None:
    for path in ("/?node=paper:p5", "/?node=paper:p5&with=paper:p8"):
        ready(page, path)
        page.click("#why")
        page.wait_for_selector(".why .words span")
        assert query(page)["why"] == ["1"]
        page.reload()
        page.wait_for_selector(".why .words span")  # without a click


def test_hidden_colours_are_in_the_link(page: Any) -> None:
    ready(page, "/?color=label")
    eventually(page, lambda: page.locator("#legend .key").count() >= 3)
    page.locator("#legend .key").nth(1).click()
    page.wait_for_selector("#legend .key[aria-pressed=false]")
    name = page.locator("#legend .key[aria-pressed=false] .name").inner_text()
    assert query(page)["hide"] == [name]
    page.reload()
    page.wait_for_selector("#legend .key[aria-pressed=false]")
    assert page.locator("#legend .key[aria-pressed=false] .name").all_inner_texts() == [name]
    assert page.evaluate("heterformerMap.hidden.size") == 1
    page.select_option("#color", "year")
    page.wait_for_selector("#legend .keys.numbers")
    assert "hide" not in query(page)
    assert page.evaluate("heterformerMap.hidden.size") == 0


def test_copies_are_whole(page: Any) -> None:
    ready(page, "/?q=protein")
    found = results(page)
    page.get_by_role("button", name="Copy this list as CSV").first.click()
    page.wait_for_selector("#toast.shown")
    rows = list(csv.DictReader(io.StringIO(page.evaluate("navigator.clipboard.readText()"))))
    assert [" ".join(row["name"].split()) for row in rows] == found
    page.get_by_role("button", name="Copy this list as JSON").first.click()
    until(page, "navigator.clipboard.readText().then(text => text.startsWith('['))")
    copied = json.loads(page.evaluate("navigator.clipboard.readText()"))
    assert [row["id"] for row in copied] == [row["id"] for row in rows]
    assert copied[0]["rank"] == 1


def test_light_and_dark(page: Any) -> None:
    ready(page)
    back = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(back)
    page.click("#theme")
    eventually(page, lambda: page.evaluate(back) != light)
    page.reload()
    page.wait_for_selector("body[data-map=ready]")
    assert page.evaluate(back) != light
    page.click("#theme")
    eventually(page, lambda: page.evaluate(back) == light)


def test_another_run(page: Any) -> None:
    ready(page)
    page.select_option("#run", "run")
    until(page, "document.querySelector('#facts').textContent.includes('venue')")
    assert query(page)["run"] == ["run"]
    page.wait_for_selector("dl.facts >> text=200")


def test_an_unknown_node_is_one_sentence(page: Any, opened: Opened) -> None:
    opened.allowed = {404}
    ready(page, "/?node=paper:nowhere")
    page.wait_for_selector(".problem")
    assert page.locator(".problem").inner_text() == "There is no paper with the id 'nowhere'."


def test_on_a_phone(phone: Any) -> None:
    ready(phone)
    for path in ("/", "/?q=protein", "/?node=paper:p5", "/?node=paper:p5&with=paper:p8"):
        ready(phone, path)
        idle(phone)
        phone.wait_for_load_state("networkidle")
        assert phone.evaluate("document.documentElement.scrollWidth") <= 390, path
    ready(phone, "/?q=protein")
    assert phone.locator("#map").bounding_box()["height"] > 200
    phone.locator("ol.ranked > li .head a").first.tap()
    phone.wait_for_selector("article.node-page")
    assert phone.locator("#content h1").is_visible()


PAINTED = """() => {
  const { canvas } = heterformerMap, gl = canvas.getContext("webgl2");
  const pixels = new Uint8Array(4 * canvas.width * canvas.height);
  gl.readPixels(0, 0, canvas.width, canvas.height, gl.RGBA, gl.UNSIGNED_BYTE, pixels);
  return pixels.filter((value, at) => at % 4 === 3 && value > 0).length;
}"""


def test_a_picture_that_grows_over_several_frames_has_all_points(page: Any) -> None:
    ready(page)
    whole = "heterformerMap.picture.share === 1 && heterformerMap.awaited === null"
    page.evaluate("heterformerMap.drawsAll = true; heterformerMap.draw()")
    until(page, whole)
    at_once = page.evaluate(PAINTED)
    page.evaluate("""() => {
      const { scatter, tempo } = heterformerMap, draw = scatter.draw.bind(scatter);
      window.parts = [];
      scatter.draw = (camera, options) => { window.parts.push(options.to); draw(camera, options); };
      Object.assign(tempo, { points: 30, note: () => {} });
      heterformerMap.drawsAll = false;
      heterformerMap.draw();
    }""")
    until(page, whole)
    assert len(page.evaluate("window.parts")) > 2
    assert page.evaluate(PAINTED) == at_once > 100


def test_what_is_marked_is_not_hidden_by_the_legend(page: Any) -> None:
    ready(page)
    page.wait_for_selector("#legend .key")
    covered, seen = page.evaluate("""() => {
      const { camera } = heterformerMap, box = (name) => document.querySelector(name).getBoundingClientRect();
      const [map, legend] = [box("#map"), box("#legend > *")];
      const isCovered = (x, y) => x < legend.right - map.left && y > legend.top - map.top;
      const place = camera.toMap(legend.left - map.left + 60, legend.top - map.top + 60);
      const before = isCovered(...camera.toScreen(...place));
      heterformerMap.reveal([place, camera.toMap(camera.width / 2, camera.height / 2)]);
      const [x, y] = camera.toScreen(...place);
      return [before, !isCovered(x, y) && x > 0 && y > 0 && x < camera.width && y < camera.height];
    }""")
    assert covered
    assert seen


def test_only_what_is_seen_is_drawn(page: Any) -> None:
    ready(page)
    everything = page.evaluate("heterformerMap.scatter.seen(heterformerMap.camera)")
    assert everything == page.evaluate("heterformerMap.points.count")
    page.evaluate("heterformerMap.camera.zoomBy(8)")
    assert page.evaluate("heterformerMap.scatter.seen(heterformerMap.camera)") < everything


def test_points_of_a_frame_follow_its_time(page: Any) -> None:
    ready(page)
    page.evaluate("import('/static/js/tempo.js').then(({ Tempo }) => { window.tempo = new Tempo(); })")
    until(page, "'tempo' in window")
    first = page.evaluate("tempo.points")
    assert page.evaluate("(tempo.note(30), tempo.points)") == first
    fewer = page.evaluate("(tempo.note(200), tempo.points)")
    assert fewer < first
    assert page.evaluate("(tempo.note(17), tempo.points)") > fewer
    assert page.evaluate("(Array.from({ length: 99 }, () => tempo.note(900)), tempo.points)") >= 10_000


def test_networks_that_are_asked_for_at_once_do_not_mix(page: Any) -> None:
    ready(page)
    for key in ("p4", "p7"):
        page.evaluate(f"history.pushState(null, '', '/?node=paper:{key}&view=network&open=paper:{key}')")
        page.evaluate("dispatchEvent(new PopStateEvent('popstate'))")
    page.wait_for_selector("body[data-network]")
    idle(page)
    page.wait_for_selector("article.node-page")
    assert query(page)["open"] == ["paper:p7"]
    eventually(page, lambda: "number 7" in page.locator("#content h1").inner_text())
