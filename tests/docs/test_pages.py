"""README.md and docs/: links lead somewhere, and what they show runs."""

from __future__ import annotations

import inspect
import json
import re
import shlex
import signal
from argparse import ArgumentParser
from collections.abc import Iterator
from dataclasses import replace
from doctest import DocTestParser
from pathlib import Path

import pytest

import heterformer
from heterformer.cli.commands import COMMANDS
from heterformer.cli.main import main
from heterformer.comparison.job import carry_out
from tests.docs.blocks import ROOT, Block, blocks, commands, pages, readme_tables
from tests.docs.pages import run, run_command
from tests.serve.serving import server
from tools import site_hooks

README = ROOT / "README.md"
FIRST = ("training", "finetuning", "vectors", "search")
RUN_IN_ORDER = [README, *(ROOT / "docs" / f"{name}.md" for name in FIRST)]
RUN_IN_ORDER += [ROOT / "docs" / f"{name}.md" for name in ("evaluation", "explain", "compare", "students")]
RUN_IN_ORDER += [ROOT / "docs" / f"{name}.md" for name in ("hub", "tuning", "pyg", "recommendation")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with tables for the README's specification and, built from it, a network and a run."""
    folder = tmp_path_factory.mktemp("pages")
    handler = signal.getsignal(signal.SIGTERM)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        # In this process: a child of its own for every run has its tests elsewhere.
        patch.setattr("heterformer.comparison.core.run_in_child", carry_out)
        for file, text in readme_tables().items():
            (folder / file).write_text(text, encoding="utf-8")
        (specification,) = (block for block in blocks(README) if block.file)
        run(specification)
        first = [w for block in shown(README) for w in commands_of(block) if w[1] in ("build", "train")]
        for words in sorted(first, key=lambda words: words[1]):
            run_command(words, "README.md")
        papers = Path("papers.csv").read_text(encoding="utf-8")
        Path("papers.csv").write_text(papers + papers.splitlines()[-1].replace(",", "-new,", 1) + "\n")
        run_command(["heterformer", "build", "network.yaml", "grown.net"], "training.md")
        Path("papers.csv").write_text(papers, encoding="utf-8")
        yield folder
    signal.signal(signal.SIGTERM, handler)


def commands_of(block: Block) -> list[list[str]]:
    return commands(block) if block.language == "bash" else []


def shown(page: Path) -> list[Block]:
    """The blocks that are run: those without a language only show something."""
    return [block for block in blocks(page) if block.language in ("bash", "python")]


@pytest.mark.parametrize("page", RUN_IN_ORDER, ids=lambda page: page.name)
def test_what_a_page_shows_runs(page: Path, folder: Path) -> None:
    assert shown(page)
    for block in shown(page):
        if block.language == "python":
            run(block)
        for words in commands_of(block):
            # The fixture has made what most pages use; a server has no end, and tests of its own.
            is_there = words[1] in ("build", "train") and Path(words[3]).exists()
            if words[1] != "serve" and not is_there:
                run_command(words, block.place)


def test_requests_of_the_page_about_the_server_are_answered(folder: Path) -> None:
    page = ROOT / "docs" / "serve.md"
    texts = [block.text for block in blocks(page)]
    requests = [shlex.split(line) for text in texts for line in text.splitlines() if "$ curl" in line]
    assert len(requests) > 5
    with server(Path("runs/papers").resolve()) as running, running.client() as client:
        for words in requests:
            path = next(word for word in words if word.startswith("localhost")).removeprefix("localhost:8080")
            if "--json" in words:
                answer = client.post(path, json=json.loads(words[words.index("--json") + 1]))
            else:
                answer = client.get(path)
            assert answer.status_code == 200, f"{path}: {answer.text}"
        (block,) = (block for block in blocks(page) if block.language == "python")
        run(replace(block, text=block.text.replace("http://127.0.0.1:8080", running.address)))


# What docstrings name, in the words of the tables here. Those that train take minutes and are shown on pages.
HERE = {"P05-3014": "p01", "rada-mihalcea": "Ada Lee", "Jane Doe": "Ada Lee"}
CHEAP = ("InputError", "Run", "Searcher", "Vectors", "embed", "evaluate", "explain", "load_model")


@pytest.mark.parametrize("name", CHEAP)
def test_the_example_of_a_docstring_runs(name: str, folder: Path) -> None:
    if name == "Vectors" and not Path("papers.parquet").exists():
        heterformer.embed(heterformer.load_model("runs/papers"), "papers.net", out="papers.parquet")
    doc = inspect.getdoc(getattr(heterformer, name)) or ""
    names = {name: getattr(heterformer, name)}
    for example in DocTestParser().get_examples(doc):
        source = example.source
        for there, here in HERE.items():
            source = source.replace(there, here)
        exec(compile(source, name, "exec"), names)


def test_the_first_commands_are_those_of_the_makefile() -> None:
    first = blocks(README)[0].text
    targets = re.findall(r"^make ([\w-]+)", first, re.MULTILINE)
    assert targets == ["demo", "explore", "demo-debian", "test"]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert all(f"\n{target}:" in makefile for target in targets)


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_every_command_of_a_page_exists(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    helped = capsys.readouterr().out
    text = page.read_text(encoding="utf-8")
    named = set(re.findall(r"(?:^|`)(?:\$ )?heterformer ([a-z]+)", text, re.MULTILINE))
    assert [name for name in named if not re.search(rf"\b{name}\b", helped)] == []


@pytest.fixture(scope="module")
def flags() -> dict[str, set[str]]:
    """The flags of every command, those of its subcommands among them."""
    return {name: set(_flags(site_hooks._parser(name, command))) for name, command in COMMANDS.items()}


def _flags(parser: ArgumentParser) -> Iterator[str]:
    for action in site_hooks._actions(parser):
        yield from action.option_strings
    for _, inner in site_hooks._subcommands(parser):
        yield from _flags(inner)


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_every_flag_of_a_command_exists(page: Path, flags: dict[str, set[str]]) -> None:
    """Also in blocks that are not run, because they take hours or an accelerator."""
    for block in blocks(page):
        if block.language not in ("", "bash"):
            continue
        lines = block.text.replace("\\\n", " ").splitlines()
        for line in (line.partition("#")[0] for line in lines):
            if match := re.search(r"(?:^|\s)heterformer ([a-z]+)\b(?!.*: )(.*)", line):
                given = set(re.findall(r"\s(--[\w.-]+)", match[2]))
                known = flags[match[1]] | ({"--author"} if match[1] == "search" else set())  # a node type
                assert given <= known, f"{block.place}: {given - known} of {line}"


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for name, anchor in re.findall(r"\]\((?!https?:)([\w./-]*)(?:#([^)]+))?\)", text):
        target = (page.parent / name) if name else page
        assert target.exists(), f"{page.name}: {name}"
        if anchor:
            headings = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.MULTILINE)
            anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert anchor in anchors, f"{page.name}: {name}#{anchor}"
