from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heterformer.maps.core import NodeMap
from heterformer.maps.page import map_page, write_map_page
from heterformer.maps.palette import CLASSES, OTHER, UNLABELLED
from tests.maps.maps import GREY, classes, random_map, types

NASTY = (
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "-->",
    "]]>\"'`${alert(1)}\\",
    "&lt;b&gt; &amp; \u2028\u2029",
    "論文 🎉 é",
    "{{data}}{{title}}",
    "\x00\x1b",
)


class Page(HTMLParser):
    """The elements of a page, and the texts of its scripts, as a browser's parser would find them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, Mapping[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._open = tag
        self.texts.setdefault(tag, []).append("")

    def handle_endtag(self, tag: str) -> None:
        self._open = ""

    def handle_data(self, data: str) -> None:
        if self._open:
            self.texts[self._open][-1] += data

    @property
    def tags(self) -> list[str]:
        return [tag for tag, _ in self.elements]

    @property
    def data(self) -> dict[str, Any]:
        values: dict[str, Any] = json.loads(self.texts["script"][0])
        return values

    @property
    def script(self) -> str:
        return self.texts["script"][1]


def plain() -> NodeMap:
    return random_map(30, [*classes("a", "b"), *GREY])


def renamed(found: NodeMap, **values: str) -> NodeMap:
    """The same map with one node called something else."""
    return replace(found, points=(replace(found.points[0], **values), *found.points[1:]))


def test_the_nodes_are_in_the_page(tmp_path: Path) -> None:
    found = plain()
    path = write_map_page(found, tmp_path / "new" / "map.html")
    data = Page(path.read_text(encoding="utf-8")).data
    told = [(data["types"][t]["name"], found.groups[g], *rest) for _, _, t, g, *rest in data["nodes"]]
    assert data["names"] == []
    assert told == [(p.node_type, p.group, p.id, p.name, p.label) for p in found.points]
    expected = [*CLASSES[:2], OTHER, UNLABELLED]
    assert [(group["light"], group["dark"]) for group in data["groups"]] == expected
    assert [key["name"] for key in data["legend"]] == ["a", "b", "other labels", "no label"]


def test_places_are_whole_numbers_in_proportion() -> None:
    found = plain()
    nodes = Page(map_page(found)).data["nodes"]
    places = np.array([node[:2] for node in nodes])
    true = np.array([(p.x, p.y) for p in found.points])
    true = true - true.min(0)
    assert places == pytest.approx(true / true.max() * 10_000, abs=0.51)
    every = [value for node in nodes for value in node[:2]]
    assert all(isinstance(value, int) for value in every)
    assert (min(every), max(every)) == (0, 10_000)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_few_nodes(count: int) -> None:
    data = Page(map_page(random_map(count, classes("a")))).data
    assert len(data["nodes"]) == count
    assert (data["width"] or data["height"]) == (10_000 if count > 1 else 0)


def test_the_title_says_what_and_how_much() -> None:
    page = Page(map_page(replace(plain(), network="papers", nodes=1234)))
    assert page.texts["title"] == page.texts["h1"] == ["papers: map of nodes"]
    assert "t-SNE of 30 of 1,234 paper nodes" in page.texts["p"][0]
    assert "t-SNE of 30 paper nodes" in Page(map_page(plain())).texts["p"][0]
    placed = replace(plain(), types=("paper", "author"), placed=("author",))
    assert "author nodes are placed among the texts closest to them" in Page(map_page(placed)).texts["p"][0]


@pytest.mark.parametrize("text", NASTY)
@pytest.mark.parametrize("field", ["name", "id", "label"])
def test_what_a_node_is_called_stays_text(text: str, field: str) -> None:
    usual, found = Page(map_page(plain())), Page(map_page(renamed(plain(), **{field: text})))
    assert found.tags == usual.tags
    assert found.script == usual.script
    place = {"id": 4, "name": 5, "label": 6}[field]
    assert found.data["nodes"][0][place] == (" ".join(text.split()) if field == "name" else text)


@pytest.mark.parametrize("text", NASTY)
def test_so_do_labels_types_and_the_network(text: str) -> None:
    usual = Page(map_page(random_map(9, [*classes("a"), *types("paper")], ("paper", "venue"))))
    odd = replace(random_map(9, [*classes(text), *types(text)], (text, "venue")), network=text)
    found = Page(map_page(odd))
    assert found.tags == usual.tags
    assert found.script == usual.script
    assert [key["name"] for key in found.data["legend"]] == [text, text, "venue"]
    assert found.data["network"] == text
    assert found.texts["h1"] == [" ".join(f"{text}: map of nodes".split())]


def test_no_sign_that_ends_a_script_is_in_the_data() -> None:
    html = map_page(renamed(plain(), name="".join(NASTY)))
    (data,) = re.findall(r'id="data">(.*?)</script>', html, re.DOTALL)
    assert not set(data) & set("<>&\u2028\u2029\n")
    assert json.loads(data)["nodes"][0][5] == " ".join("".join(NASTY).split())


def test_a_whole_text_as_a_name_is_cut() -> None:
    data = Page(map_page(renamed(plain(), name="word " * 1000))).data
    assert len(data["nodes"][0][5]) <= 200
    assert data["nodes"][0][5].endswith("word…")


def test_nothing_is_loaded_and_only_the_own_script_runs() -> None:
    html = map_page(plain())
    page = Page(html)
    assert not re.search(r"https?:|//[a-z]|@import|url\(|\bimport\b|fetch\(|XMLHttp|innerHTML|eval\(", html)
    assert not {"link", "img", "iframe", "object", "base", "form"} & set(page.tags)
    for _, attributes in page.elements:
        assert not {"src", "href", "srcset", "action"} & set(attributes)
        assert not [name for name in attributes if name.startswith("on")]
    digest = base64.b64encode(hashlib.sha256(page.script.encode()).digest()).decode()
    (policy,) = (a["content"] for _, a in page.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert {"default-src 'none'", f"script-src 'sha256-{digest}'"} <= set(policy.split("; "))


def test_every_element_that_the_script_asks_for_is_there() -> None:
    page = Page(map_page(plain()))
    asked = set(re.findall(r'(?:element|getElementById)\("(\w+)"\)', page.script))
    assert len(asked) > 8
    assert asked <= {attributes.get("id") for _, attributes in page.elements}


def test_a_node_takes_little_room() -> None:
    few, many = (map_page(random_map(count, classes("a", "b"))) for count in (10, 1010))
    assert (len(many) - len(few)) / 1000 < 60


def test_the_template_is_part_of_an_installed_package() -> None:
    root = Path(__file__).parents[2]
    patterns = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    package = root / "src" / "heterformer"
    covered = {path for pattern in patterns["heterformer"] for path in package.glob(pattern)}
    assert package / "maps" / "page.html" in covered


def test_a_node_has_its_text_labels_and_neighbours() -> None:
    found = random_map(2, classes("a", "b"))
    first, second = found.points
    first = replace(first, others=(found.groups[1],), labels=("a", "b", "rare"), text="long " * 200)
    near = {"neighbors": ("Jane Doe", "ACL"), "degree": 7}
    points = (replace(first, **near), replace(second, **near))
    data = Page(map_page(replace(found, points=points))).data
    label, text, degree, names, others = data["nodes"][0][6:]
    assert (label, degree, others) == ("a; b; rare", 7, [1])
    assert text.endswith("…")
    assert len(text) == 400
    assert [data["names"][number] for number in names] == ["Jane Doe", "ACL"]
    assert data["nodes"][1][6:] == ["b", "", 7, [0, 1], []]
    assert data["names"] == ["Jane Doe", "ACL"]  # each once


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js")
def test_exact_matches_come_first_and_no_name_covers_another() -> None:
    script = Page(map_page(plain())).script
    pure = script[: script.index("// --- The page")]
    texts = ["graph theory\np1", "a graph\np2", "graph\np3", "x\ngraph", "other\np5"]
    boxes = [[0, 0, 10, 10], [5, 5, 15, 15], [11, 0, 20, 10]]
    asked = f"[matching({json.dumps(texts)}, ' Graph', () => true), matching([], ' ', null), apart({boxes})]"
    command = ["node", "-e", f"{pure}\nconsole.log(JSON.stringify({asked}))"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [[2, 3, 0, 1], None, [0, 2]]
