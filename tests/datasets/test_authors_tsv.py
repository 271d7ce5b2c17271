"""The original authors' training files as a network with fixed pairs."""

from __future__ import annotations

from pathlib import Path

import pytest

from heterformer.datasets.authors_lines import AuthorsTsvOptions
from heterformer.datasets.authors_tsv import build_authors_tsv, node_id
from heterformer.datasets.raw_build import DatasetBuild
from heterformer.errors import InputError
from heterformer.network.split.draw import make_split
from heterformer.network.split.options import SplitOptions
from heterformer.network.split.split import Split
from heterformer.network.store import Network
from tests.datasets.authors import LAYOUT, line, side, write_parts
from tests.datasets.raw import dropped
from tests.networks import edges_of, files

OPTIONS = AuthorsTsvOptions(text_neighbors=2, textless=LAYOUT)
DUNE = side("Dune", ["Hyperion", ""], [4, 0], 7)
TRAIN = [
    line(DUNE, side("Ubik", ["Émile"])),
    line(side("Dune", ["Ubik"], [4]), side("Émile")),  # Dune once more, with other neighbours
    line(side("Émile"), side("Hyperion")),  # the other way round in test.tsv
    line(side("Same"), side("Same")),
    line(side(""), DUNE),
]
VALIDATION = [line(side("Hyperion", author=7), DUNE)]
TEST = [line(side("Hyperion", [], [1]), side("Émile")), line(side("Solaris"), DUNE)]


def built(folder: Path, lines_at_once: int = 5_000) -> DatasetBuild:
    write_parts(folder, TRAIN, VALIDATION, TEST)
    return build_authors_tsv(folder, folder / "net", OPTIONS, lines_at_once)


def named(network: Network, relation: str) -> set[tuple[str, str]]:
    """Edges by text instead of id, numbers as they are."""
    text = dict(zip(network.ids("book"), network.texts("book"), strict=True))
    return {(text[source], text.get(target, target)) for source, target in edges_of(network, relation)}


def test_nodes_are_texts_and_edges_are_what_stands_in_a_line(tmp_path: Path) -> None:
    network = built(tmp_path).network
    titles = {"Dune", "Ubik", "Hyperion", "Émile", "Solaris", "Same"}
    assert dict(zip(network.ids("book"), network.texts("book"), strict=True)) == {
        node_id(t): t for t in titles
    }
    pairs = {
        ("Dune", "Ubik"),
        ("Dune", "Émile"),
        ("Hyperion", "Dune"),
        ("Hyperion", "Émile"),
        ("Solaris", "Dune"),
    }
    neighbors = {("Dune", "Hyperion"), ("Ubik", "Émile"), ("Dune", "Ubik")}
    assert named(network, "linked") == pairs | neighbors
    assert named(network, "has_shelf") == {("Dune", "4"), ("Dune", "0"), ("Hyperion", "1")}
    assert named(network, "has_author") == {("Dune", "7"), ("Hyperion", "7")}
    assert network.schema.neighbors == {"book": 2, "shelf": 2, "author": 1}
    assert (network.schema.max_tokens, network.schema.test_batch_size) == (64, 100)


def test_the_pairs_are_a_split_for_training(tmp_path: Path) -> None:
    found = built(tmp_path)
    assert found.split == tmp_path / "net" / "split.parquet"
    split = make_split(found.network, SplitOptions(file=str(found.split)))
    assert by_text(found.network, split) == {
        "train": [("Dune", "Ubik"), ("Dune", "Émile")],
        "validation": [("Hyperion", "Dune")],
        "test": [("Hyperion", "Émile"), ("Solaris", "Dune")],
    }


def by_text(network: Network, split: Split) -> dict[str, list[tuple[str, str]]]:
    texts = network.texts("book")
    parts = {"train": split.train, "validation": split.validation, "test": split.test}
    return {part: [(texts[q], texts[k]) for q, k in pairs] for part, pairs in parts.items()}


def test_lines_that_are_no_pair_are_counted(tmp_path: Path) -> None:
    found = built(tmp_path)
    assert dropped(found) == {
        "test.tsv": {},
        "val.tsv": {},
        "train.tsv": {
            "also a pair of another file": (1, ["Émile -> Hyperion"]),
            "query and key have the same text": (1, ["Same"]),
            "no text": (1, ["Dune"]),
        },
    }
    assert (found.raw["train.tsv"].read, found.raw["train.tsv"].kept) == (5, 2)


def test_tiny_chunks_give_the_same_network(tmp_path: Path) -> None:
    (tmp_path / "again").mkdir()
    whole = built(tmp_path)
    again = built(tmp_path / "again", lines_at_once=1)
    assert set(again.network.ids("book")) == set(whole.network.ids("book"))
    for relation in ("linked", "has_shelf", "has_author"):
        assert named(again.network, relation) == named(whole.network, relation)
    assert again.split is not None
    split = Split.open(again.split, again.network)
    assert by_text(again.network, split)["train"] == [("Dune", "Ubik"), ("Dune", "Émile")]


def test_a_part_without_pairs_is_one_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    write_parts(tmp_path, TRAIN, [line(side("Same"), side("Same"))], TEST)
    before = files(tmp_path)
    with pytest.raises(InputError, match=r"val\.tsv: no pair is usable\."):
        build_authors_tsv(tmp_path, tmp_path / "net", OPTIONS)
    assert files(tmp_path) == before


def test_missing_files_are_told_with_their_place(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").touch()
    with pytest.raises(InputError, match=r"no test\.tsv and val\.tsv; download from https://github\.com/"):
        build_authors_tsv(tmp_path, tmp_path / "net", OPTIONS)
