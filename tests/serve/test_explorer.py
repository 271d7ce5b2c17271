"""The explorer's page, files and data over HTTP, without a browser; tests/browser has one."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import httpx
import pytest
from starlette.testclient import TestClient

from heterformer.serve.app import make_app
from heterformer.serve.explorer import MOST_POINTS, POLICY
from heterformer.serve.metrics import Metrics
from heterformer.serve.options import ServeOptions
from heterformer.serve.service import Service
from tests.serve.serving import served_run, service

STATIC = Path(str(files("heterformer.serve") / "static"))


@pytest.fixture(scope="module")
def client() -> TestClient:
    return TestClient(make_app(service(), Metrics()), base_url="http://localhost")


def test_the_page_allows_nothing_from_elsewhere(client: TestClient) -> None:
    page = client.get("/")
    assert page.status_code == 200
    assert page.headers["content-security-policy"] == POLICY
    assert "unsafe" not in POLICY
    assert "http" not in POLICY
    assert "<script>" not in page.text
    assert not re.findall(r"\s(on\w+|style)=", page.text)


def test_every_file_that_the_page_names_is_served(client: TestClient) -> None:
    """Also what modules import: a name that is wrong would only show in a browser."""
    wanted, seen = {*re.findall(r'(?:src|href)="(/static/[^"]+)"', client.get("/").text)}, set()
    assert len(wanted) >= 4
    while wanted:
        path = wanted.pop()
        seen.add(path)
        answer = client.get(path)
        assert answer.status_code == 200, path
        assert answer.headers["x-content-type-options"] == "nosniff"
        if path.endswith(".js") and "/vendor/" not in path:
            names = re.findall(r'(?:from|import\() ?"(\.[^"]+)"', answer.text) + re.findall(
                r'^import "(\.[^"]+)"', answer.text, re.MULTILINE
            )
            assert answer.headers["content-type"].startswith("text/javascript")
            wanted |= {str(httpx.URL(f"http://x{path}").join(name).path) for name in names} - seen
    assert {f"/static/{p.relative_to(STATIC).as_posix()}" for p in STATIC.rglob("*.js")} == {
        path for path in seen if path.endswith(".js")
    }


def test_modules_never_make_markup_of_data() -> None:
    for path in (STATIC / "js").glob("*.js"):
        text = path.read_text(encoding="utf-8")
        for word in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
        ):
            assert word not in text, f"{path.name} has {word}"
    assert not re.search(
        r"\beval\(|new Function", (STATIC / "vendor" / "graph.js").read_text(encoding="utf-8")
    )


def test_vendored_files_are_small_and_have_their_licences() -> None:
    readme = (STATIC / "vendor" / "README.md").read_text(encoding="utf-8")
    packages = re.findall(r"^\| ([\w-]+) \| [\d.]+ \| MIT", readme, re.MULTILINE)
    assert {f"LICENSE.{name}.txt" for name in packages} == {p.name for p in STATIC.rglob("LICENSE*")}
    assert all(path.stat().st_size < 1_000_000 for path in STATIC.rglob("*"))


@pytest.mark.parametrize(
    "name", ["nothing.js", "../app.py", "..%2f..%2fapp.py", "vendor/README.md", "", "/etc/passwd"]
)
def test_nothing_else_is_served(client: TestClient, name: str) -> None:
    answer = client.get(f"/static/{name}")
    assert answer.status_code == 404
    assert set(answer.json()) == {"error", "error_type"}


def test_the_page_needs_no_key_but_its_data_does() -> None:
    options = ServeOptions(api_key="secret", device="cpu")
    app = make_app(Service([served_run()], options), Metrics())
    client = TestClient(app, base_url="http://localhost")
    assert client.get("/").status_code == client.get("/static/js/main.js").status_code == 200
    assert client.get("/map").status_code == client.get("/info").status_code == 401
    assert client.get("/map", headers={"authorization": "Bearer secret"}).status_code == 200


def test_the_maps_data(client: TestClient) -> None:
    while (about := client.get("/map").json())["status"] == "working":
        pass
    assert about["status"] == "ready"
    points = client.get("/map/points", params={"limit": 20, "offset": 5})
    assert len(points.content) == 20 * 8
    boxed = client.get("/map/points", params={"box": [0, 0, 65_535, 65_535], "limit": MOST_POINTS})
    assert len(boxed.content) == about["nodes"] * 8
    assert client.get("/map/colors", params={"by": "label"}).json()["keys"]
    assert client.get("/map/nodes/5").json() == {"node_type": "paper", "id": "p5"} | {
        "name": client.get("/nodes/paper/p5").json()["name"]
    }
    nodes = [{"type": "paper", "id": "p5"}, {"type": "paper", "id": "none"}]
    place, missing = client.post("/map/places", json={"nodes": nodes}).json()["places"]
    assert place["number"] == 5
    assert missing is None


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/map/points?limit=0", 422),
        ("/map/points?box=1&box=2", 422),
        ("/map/colors?by=nonsense", 422),
        ("/map/nodes/-1", 404),
        ("/map/nodes/99999999999999999999", 404),
        ("/map?model=unknown", 404),
    ],
)
def test_mistakes_are_one_sentence(client: TestClient, path: str, status: int) -> None:
    answer = client.get(path)
    assert answer.status_code in (status, 400), answer.text
    assert answer.json()["error"].endswith(".")


def test_a_pair(client: TestClient) -> None:
    pair = {"one": {"type": "paper", "id": "p1"}, "other": {"type": "paper", "id": "p2"}}
    assert set(client.post("/pair", json=pair).json()) == {"score", "cosine", "above", "linked", "shared"}
    pair["other"]["id"] = "unknown"
    assert client.post("/pair", json=pair).status_code == 404
