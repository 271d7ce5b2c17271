"""docs/own-data.md: every block of it is written or run, from top to bottom, in one folder."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from heterformer import Network
from tests.docs.blocks import ROOT, blocks
from tests.docs.pages import run
from tests.networks import edges_of

PAGE = ROOT / "docs" / "own-data.md"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder after everything on the page has been done in it."""
    folder = tmp_path_factory.mktemp("own data")
    handler = signal.getsignal(signal.SIGTERM)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for block in blocks(PAGE):
            run(block)
        yield folder
    signal.signal(signal.SIGTERM, handler)


def test_the_page_has_blocks_of_every_kind() -> None:
    kinds = {(block.language, bool(block.file)) for block in blocks(PAGE)}
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
        ("books", "rated_by", ("b4", "r3")),
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
