"""Every link and picture of a built site leads somewhere in it: 'python tools/check_links.py site'.

Addresses of other hosts are not asked. Files that a page loads from elsewhere are refused: the site is
complete without a network.
"""

from __future__ import annotations

import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"img": "src", "script": "src", "link": "href"}
NOT_LOADED = ("canonical", "next", "prev")  # kinds of <link> that only name an address


class PageParser(HTMLParser):
    """Collects the anchors of a page, where it leads, and what it loads."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = {""}
        self.links: list[str] = []
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take in a tag."""
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif tag in LOADED and LOADED[tag] in values and values.get("rel") not in NOT_LOADED:
            self.loaded.append(values[LOADED[tag]])


@cache
def parsed(page: Path) -> PageParser:
    """A page, read once."""
    parser = PageParser()
    parser.feed(page.read_text(encoding="utf-8"))
    return parser


def broken_links(site: Path) -> list[str]:
    """A sentence for every link that leads nowhere, and for everything that is loaded from another host."""
    problems = []
    for page in sorted(site.rglob("*.html")):
        if page.name == "404.html":  # its links are absolute: it is shown for any address
            continue
        name, content = page.relative_to(site), parsed(page)
        problems += [f"{name}: loads {url}" for url in content.loaded if urlsplit(url).netloc]
        for url in (*content.links, *content.loaded):
            parts = urlsplit(url)
            if parts.scheme or parts.netloc:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page.resolve()
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file():
                problems.append(f"{name}: {url} leads nowhere")
            elif target.suffix == ".html" and unquote(parts.fragment) not in parsed(target).anchors:
                problems.append(f"{name}: {url} has no such anchor")
    return problems


if __name__ == "__main__":
    site = Path(sys.argv[1])
    problems = broken_links(site)
    print(*problems, sep="\n", end="\n" * bool(problems))
    pages = len(list(site.rglob("*.html")))
    if problems or not pages:
        sys.exit(f"{site}: {len(problems)} problems on {pages} pages")
    print(f"{site}: {pages} pages, every link leads somewhere")
