"""Chromium on this machine, and a server whose data tries to break out of the page."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import polars as pl
import pytest

ASKED = os.environ.get("HETERFORMER_BROWSER_TESTS") == "1"  # 'make test-browser' sets it
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SECONDS = 60  # in which a page shows something; far more than it takes
FLAGS = (
    "--no-sandbox",  # tests may run as root
    "--use-angle=swiftshader",  # WebGL without a graphics card
    "--enable-unsafe-swiftshader",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
HOSTILE = "</script><img src=x onerror=window.broken=1>"
PAPERS, TOPICS = 90, ("parsing grammar verbs", "protein enzyme cells", "market inflation trade")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Elsewhere than in 'make test-browser' they are left out."""
    here = [item for item in items if Path(__file__).parent in item.path.parents]
    if not ASKED:
        for item in here:
            item.add_marker(pytest.mark.skip("run by 'make test-browser'"))


def hostile_network() -> Any:
    """Papers of three topics; ids, names, labels and columns hold markup."""
    from heterformer.network.store import Network

    ids = [f"p{i}" if i else HOSTILE for i in range(PAPERS)]
    frame = pl.DataFrame(
        {
            "id": ids,
            "title": [f"{TOPICS[i % 3]} number {i} {HOSTILE if i == 1 else ''}" for i in range(PAPERS)],
            "field": [f"{HOSTILE} field" if i % 3 == 0 else f"field {i % 3}" for i in range(PAPERS)],
            "year": [2000 + i % 20 for i in range(PAPERS)],
            "note": [f"{HOSTILE} note" if i % 2 else "plain" for i in range(PAPERS)],
        }
    )
    spec = {
        "name": f"{HOSTILE} network",
        "nodes": {
            "paper": {"id": "id", "text": ["title"], "label": "field", "keep": ["year", "note"]},
            "author": {},
        },
        "relations": {
            "cites": {"from": "paper", "to": "paper", "columns": ["a", "b"]},
            "written_by": {"from": "paper", "to": "author", "columns": ["a", "b"]},
        },
    }
    rng = np.random.default_rng(0)
    cites = {
        (i, int(j)) for i in range(PAPERS) for j in rng.integers(0, PAPERS, 15) if j != i and j % 3 == i % 3
    }
    authors = [(i, HOSTILE if i % 10 == 0 else f"Author {i % 10}") for i in range(PAPERS)]
    tables = {
        "cites": pl.DataFrame([(ids[i], ids[j]) for i, j in sorted(cites)], schema=["a", "b"], orient="row"),
        "written_by": pl.DataFrame([(ids[i], name) for i, name in authors], schema=["a", "b"], orient="row"),
    }
    return Network.from_frames(spec, {"paper": frame}, tables)


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """A server of two runs."""
    from heterformer.network.build.frames import temporary_folder
    from heterformer.training.train import train
    from tests.learning import tiny_options, tiny_reader
    from tests.serve.serving import served_run, server

    run = temporary_folder() / "hostile"
    train(hostile_network(), run, tiny_options(tiny_reader(), max_steps=4))
    with server(run, served_run()) as started:
        yield started.address


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    assert CHROMIUM, "there is no chromium; 'make test-browser' installs it"
    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield opened
        opened.close()


class Opened:
    """A page, and whatever went wrong on it."""

    def __init__(self, browser: Any, address: str, **context: Any) -> None:
        options = {"viewport": {"width": 1280, "height": 800}, "reduced_motion": "reduce"} | context
        self.context = browser.new_context(base_url=address, **options)
        self.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=address)
        self.page = self.context.new_page()
        self.page.set_default_timeout(1000 * SECONDS)
        self.problems: list[str] = []
        self.allowed: set[int] = set()  # statuses that a test provokes
        host = urlsplit(address).netloc
        self.page.on("console", lambda message: self._console(message))
        self.page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        self.page.on("request", lambda request: self._request(request.url, host))
        self.page.on("dialog", lambda dialog: self.problems.append(f"dialog: {dialog.message}"))

    def _console(self, message: Any) -> None:
        expected = any(f"status of {status}" in message.text for status in self.allowed)
        if message.type in ("error", "warning") and not expected and "GPU stall" not in message.text:
            self.problems.append(f"{message.type}: {message.text}")

    def _request(self, url: str, host: str) -> None:
        if urlsplit(url).scheme not in ("data", "blob") and urlsplit(url).netloc != host:
            self.problems.append(f"left the machine: {url}")

    def close(self) -> None:
        assert self.page.evaluate("window.broken") is None
        assert self.page.locator("img").count() == 0  # the page has none: whatever there is, data made
        self.context.close()
        assert self.problems == []


@pytest.fixture
def opened(browser: Any, address: str) -> Iterator[Opened]:
    """A page of the usual size; at the end nothing may have gone wrong on it."""
    one = Opened(browser, address)
    yield one
    one.close()


@pytest.fixture
def page(opened: Opened) -> Any:
    return opened.page


@pytest.fixture
def phone(browser: Any, address: str) -> Iterator[Any]:
    """A page 390 pixels wide, with fingers."""
    one = Opened(browser, address, viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True)
    yield one.page
    one.close()
