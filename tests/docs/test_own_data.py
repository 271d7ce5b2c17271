"""docs/own-data.md: every block of it is written or run, from top to bottom, in one folder."""

from __future__ import annotations

import re
import shlex
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest

from heterformer import Network
from heterformer.cli.main import main
from tests.learning import tiny_reader
from tests.networks import edges_of

PAGE = Path(__file__).parents[2] / "docs" / "own-data.md"
# A tiny random backbone in the place of MiniLM, and two steps.
QUICK = ("--max-steps", "2", "--batch-size", "4", "--textless-dim", "8", "--warm-up-epochs", "1")


@dataclass(frozen=True)
class Block:
    """A fenced block: ``csv papers.csv`` is a file to write, ``bash`` and ``python`` are to run."""

    language: str
    file: str
    text: str
    line: int


def blocks() -> list[Block]:
    """Every fenced block; a fence that is no block of a known kind is an error."""
    page = PAGE.read_text(encoding="utf-8")
    found = []
    for match in re.finditer(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        line = page[: match.start()].count("\n") + 1
        found.append(Block(match[1], match[2] or "", match[3], line))
    assert len(found) == page.count("\n```") / 2
    return found


def run(block: Block) -> None:
    if block.file:
        Path(block.file).write_text(block.text, encoding="utf-8")
    elif block.language == "bash":
        for line in block.text.splitlines():
            program, *arguments = shlex.split(line)
            assert program == "heterformer", f"line {block.line}: only heterformer is run here"
            quick = (*QUICK, "--backbone", tiny_reader()) if arguments[0] == "train" else ()
            main([*arguments, *quick])
    else:
        assert block.language == "python", f"line {block.line}: {block.language} is neither run nor written"
        exec(compile(block.text, f"{PAGE.name}, line {block.line}", "exec"), {})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder after everything on the page has been done in it."""
    folder = tmp_path_factory.mktemp("own data")
    handler = signal.getsignal(signal.SIGTERM)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for block in blocks():
            try:
                run(block)
            except BaseException as error:
                raise AssertionError(f"{PAGE.name}, line {block.line}: {error!r}") from error
        yield folder
    signal.signal(signal.SIGTERM, handler)


def test_the_page_has_blocks_of_every_kind() -> None:
    kinds = {(block.language, bool(block.file)) for block in blocks()}
    assert kinds == {("csv", True), ("json", True), ("yaml", True), ("bash", False), ("python", False)}


def test_two_files_become_vectors(folder: Path) -> None:
    vectors = pl.read_parquet(folder / "vectors.parquet")
    assert vectors["type"].value_counts(sort=True).rows() == [("paper", 14), ("author", 8)]
    assert set(vectors.filter(type="author")["id"]) >= {"Ada Lee", "Hana Ito"}


@pytest.mark.parametrize(
    ("network", "relation", "expected"),
    [
        ("papers", "written_by", ("p14", "Cem Oz")),
        ("papers-again", "cites", ("p14", "p11")),
        ("products", "similar", ("1", "3")),
        ("products", "tagged", ("5", "glass")),
        ("paired", "share_a_tag", ("2", "5")),
        ("frames", "published_in", ("3", "EMNLP")),
        ("tickets", "duplicate_of", ("2", "1")),
        ("tickets", "opened_by", ("2", "Bob")),
        ("dump", "written_by", ("W2", "A2")),
        ("dump", "cites", ("W3", "W2")),
        ("posts", "follows", ("bob", "cleo")),
        ("posts", "replies_to", ("3", "2")),
        ("answers", "answers", ("a3", "q2")),
        ("pyg", "by", ("1", "0")),
        ("pyg-again", "cites", ("2", "0")),
        ("nx", "cites", ("3", "1")),
    ],
)
def test_every_kind_of_data_becomes_a_network(
    folder: Path, network: str, relation: str, expected: tuple[str, str]
) -> None:
    assert expected in edges_of(Network.open(folder / f"{network}.net"), relation)


def test_exported_tables_make_the_same_network(folder: Path) -> None:
    first, again = (Network.open(folder / name) for name in ("papers.net", "papers-again.net"))
    assert again.fingerprint == first.fingerprint


def test_every_link_of_the_page_leads_somewhere() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for name, anchor in re.findall(r"\]\(([\w.-]*)(?:#([\w-]+))?\)", page):
        target = PAGE.parent / name if name else PAGE
        headings = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.MULTILINE)
        anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
        assert not anchor or anchor in anchors, f"{name}#{anchor}"
