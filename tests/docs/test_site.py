"""The documentation site: its pages, those that are made of other things, and the checker of its links."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

import heterformer
from heterformer.cli.commands import COMMANDS
from heterformer.datasets.registry import DATASETS
from heterformer.search.options import SearchOptions
from heterformer.training.options import TrainingOptions
from tests.docs.blocks import ROOT
from tools import check_links, site_hooks


class Loader(yaml.SafeLoader):
    """Reads mkdocs.yml, in which MkDocs itself fills in one function."""


Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda loader, suffix, node: suffix)
CONFIG = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), Loader)


def nav_pages(entries: Any) -> Iterator[str]:
    for entry in entries:
        for value in entry.values():
            yield from [value] if isinstance(value, str) else nav_pages(value)


def test_every_page_is_in_the_navigation_once() -> None:
    """A new page in docs/ gets a line in mkdocs.yml."""
    made = {*site_hooks.ROOT_PAGES.values(), "commands.md", "api.md"}
    expected = {path.name for path in (ROOT / "docs").glob("*.md")} | made
    assert sorted(nav_pages(CONFIG["nav"])) == sorted(expected)


def test_the_site_loads_nothing_from_elsewhere() -> None:
    assert CONFIG["theme"]["font"] is False
    assert "plugins" in CONFIG
    assert "extra_javascript" not in CONFIG


@pytest.fixture(scope="module")
def commands() -> dict[str, str]:
    sections = re.split(r"^## (.*)$", site_hooks.commands_page(), flags=re.MULTILINE)[1:]
    return dict(zip(sections[::2], sections[1::2], strict=True))


def test_every_command_is_on_the_page_with_its_sentence(commands: dict[str, str]) -> None:
    assert list(commands) == list(COMMANDS)
    for name, section in commands.items():
        assert (COMMANDS[name].__doc__ or "").partition("\n")[0] in section


def test_options_have_flag_values_default_and_meaning(commands: dict[str, str]) -> None:
    assert "| `NET` |" in commands["train"]
    assert (
        f"| `--batch-size` | `INT` | `{TrainingOptions().batch_size}` | Pairs per step" in commands["train"]
    )
    assert "| `--new-learning-rate` | `FLOAT`, `auto` | `auto` |" in commands["train"]
    assert "| `--max-steps` | `INT` |  |" in commands["train"]
    assert "| `--widths` | `INT` … |" in commands["train"]
    assert "| `--parts` | `validation`, `test` … |" in commands["evaluate"]
    assert "[" not in "".join(row.split(" | ")[1] for text in commands.values() for row in rows_of(text))
    assert f"| `--top` | `INT` | `{SearchOptions().top}` |" in commands["search"]


def rows_of(section: str) -> list[str]:
    return [line for line in section.splitlines() if line.startswith("| `")]


def test_options_of_training_are_listed_once(commands: dict[str, str]) -> None:
    for name in ("compare", "plan"):
        assert "Takes all options of [train](#train), and:" in commands[name]
        assert "`--batch-size`" not in commands[name].partition("| argument")[2]
        assert "| `NET` |" in commands[name]


def test_subcommands_have_sections(commands: dict[str, str]) -> None:
    assert re.findall(r"^### dataset (\S+)$", commands["dataset"], re.MULTILINE) == list(DATASETS)


def test_every_public_name_is_on_the_page_of_the_api_once() -> None:
    names = re.findall(r"^::: heterformer\.(\w+)$", site_hooks.api_page(), re.MULTILINE)
    assert sorted(names) == sorted(heterformer.__all__)


CONSTRUCTED = {"HeteroTextEncoder", "LinkLoader", "Recommender", "Run", "Searcher"}  # by their users


def documented() -> Iterator[tuple[str, Callable[..., Any]]]:
    """The functions, and of each class the constructor and the methods that the page has."""
    for name in heterformer.__all__:
        public = getattr(heterformer, name)
        if not inspect.isclass(public):
            yield name, public
            continue
        if name in CONSTRUCTED:
            yield name, public
        for member in site_hooks.API_MEMBERS[name]:
            value = getattr(public, member, None)
            if inspect.isroutine(value):
                yield f"{name}.{member}", value


@pytest.mark.parametrize(("name", "function"), [*documented()], ids=[n for n, _ in documented()])
def test_every_argument_of_the_api_has_a_sentence(name: str, function: Callable[..., Any]) -> None:
    text = inspect.getdoc(function) or ""
    arguments = [one for one in inspect.signature(function).parameters if one not in ("self", "cls")]
    assert [one for one in arguments if not re.search(rf"^    {one}: \S", text, re.MULTILINE)] == []


@pytest.mark.parametrize("name", site_hooks.API_MEMBERS)
def test_members_on_the_page_of_the_api_exist(name: str) -> None:
    public = getattr(heterformer, name)
    declared = {field.name for field in fields(public)} if is_dataclass(public) else set()
    assert [
        one for one in site_hooks.API_MEMBERS[name] if one not in declared and not hasattr(public, one)
    ] == []


def test_every_class_of_the_api_says_which_members_it_shows() -> None:
    classes = {name for name in heterformer.__all__ if inspect.isclass(getattr(heterformer, name))}
    assert classes == site_hooks.API_MEMBERS.keys()


def test_links_of_the_readme_are_as_from_docs() -> None:
    page = site_hooks._root_page("README.md")
    assert "](own-data.md)" in page
    assert "](../CHANGELOG.md)" in page
    assert site_hooks._target("../CHANGELOG.md") == "changelog.md"
    assert site_hooks._target("../src/x.py") == f"{site_hooks.REPOSITORY}/src/x.py"
    assert site_hooks._target("results.md") == "results.md"


def write(folder: Path, **pages: str) -> Path:
    for name, body in pages.items():
        (folder / f"{name}.html").write_text(f"<html><body>{body}</body></html>", encoding="utf-8")
    return folder


def test_links_that_lead_somewhere_are_fine(tmp_path: Path) -> None:
    site = write(
        tmp_path, a='<h1 id="x"></h1><a href="b.html#y">b</a> <a href="#x">x</a>', b='<a name="y"></a>'
    )
    (site / "p.png").touch()
    write(site, c='<img src="p.png"><a href="https://example.org/">elsewhere</a>')
    assert check_links.broken_links(site) == []


def test_links_that_lead_nowhere_are_named(tmp_path: Path) -> None:
    site = write(tmp_path, a='<a href="c.html">c</a><a href="b.html#z">b</a><img src="no.png">', b="")
    write(site, d='<script src="https://example.org/x.js"></script>')
    assert check_links.broken_links(site) == [
        "a.html: c.html leads nowhere",
        "a.html: b.html#z has no such anchor",
        "a.html: no.png leads nowhere",
        "d.html: loads https://example.org/x.js",
    ]
