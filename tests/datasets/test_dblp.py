"""DBLP from a raw file of the published shape, with everything odd that such a file may hold."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from heterformer.datasets.dblp import FIELDS, PUBLISHED, DblpOptions, build_dblp
from heterformer.datasets.raw_build import DatasetBuild
from heterformer.errors import InputError
from tests.datasets.raw import dropped, in_small_chunks, write_array
from tests.networks import edges_of, files, nodes_of

ADA, BOB = {"name": "Ada Ünal", "org": 'Univ {of} "X"', "id": 11}, {"name": "Bob", "id": 12}
PAPERS: list[dict[str, Any]] = [
    {
        "id": 1,
        "title": 'Deep "{nets}" [1] \u2013 für alle 🦋',
        "authors": [ADA, BOB, ADA],
        "venue": {"raw": "ICML", "id": 100, "type": "C"},
        "year": 1990,
        "n_citation": 3,
        "references": [2, 3, 77, 1, 2],  # 3 is too old, 77 unknown, 1 the paper itself, 2 there twice
        "fos": [
            {"name": "Human\u2013computer interaction", "w": 0.4},  # as the raw file spells it
            {"name": "Computer science", "w": 0.4},
            {"name": "machine Learning", "w": 0.0},
            {"name": "Machine learning", "w": 0.1},
        ],
        "indexed_abstract": {"IndexLength": 2, "InvertedIndex": {"}": [0], "],": [1]}},
        "doi": "10.1/1",
    },
    {"id": 2, "title": "Second", "year": 2020, "venue": {"raw": " "}, "authors": [], "references": [1]},
    {"id": 3, "title": "Too old", "year": 1989, "authors": [ADA], "references": [1]},
    {"id": 4, "title": "Too new", "year": 2021, "references": [1]},
    {"id": 5, "title": "No year", "references": [1]},
    {"id": 2, "title": "Second again", "year": 2020, "authors": [BOB], "references": [6]},
    {
        "id": 6,
        "title": "",
        "year": 2000,
        "authors": [{"name": "Ada", "id": 11}, {"name": "Nobody's"}, {"id": 13}, {"org": "Univ"}, None],
        "venue": {"raw": "ICML ", "id": 101},
        "references": [1, 2],
        "fos": [],
    },
    {"title": "No id", "year": 2000, "references": [1]},
]


def built(folder: Path, records: list[dict[str, Any]] = PAPERS, **options: int) -> DatasetBuild:
    write_array(folder / "dblp.v12.json", records)
    return build_dblp(folder, folder / "net", DblpOptions(**options))


def test_nodes_edges_and_labels(tmp_path: Path) -> None:
    network = built(tmp_path).network
    assert nodes_of(network, "paper") == {
        "1": {
            "text": 'Deep "{nets}" [1] \u2013 für alle 🦋',
            "label": ["Human-computer interaction", "Machine learning"],
        },
        "2": {"text": "Second", "label": []},
        "6": {"text": "", "label": []},
    }
    assert network.times("paper").tolist() == [1990, 2020, 2000]
    authors = dict(zip(network.ids("author"), network.names("author"), strict=True))
    assert authors == {
        "11 Ada Ünal": "Ada Ünal",
        "12 Bob": "Bob",
        "11 Ada": "Ada",  # another name of the same number is another author
        "Nobody's": "Nobody's",
        "13": "13",
    }
    assert network.ids("venue") == ["ICML"]
    assert edges_of(network, "cites") == [("1", "2"), ("2", "1"), ("6", "1"), ("6", "2")]
    of_six = [("6", "11 Ada"), ("6", "Nobody's"), ("6", "13")]
    assert edges_of(network, "written_by") == [("1", "11 Ada Ünal"), ("1", "12 Bob"), *of_six]
    assert edges_of(network, "published_in") == [("1", "ICML"), ("6", "ICML")]
    assert network.label_kinds == {"paper": "multi"}


def test_what_was_left_out_is_counted(tmp_path: Path) -> None:
    found = built(tmp_path)
    assert found.raw["dblp.v12.json"].read == 8
    assert found.raw["dblp.v12.json"].kept == 3
    assert dropped(found)["dblp.v12.json"] == {
        "no id": (1, ["null"]),
        "duplicate id": (1, ["2"]),
        "year not 1990 to 2020": (3, ["3", "4", "5"]),
    }
    cites = found.network.report.relations["cites"]
    reasons = {reason: finding.count for reason, finding in cites.dropped.items()}
    assert reasons == {"unknown paper": 2, "self-loop": 1, "duplicate": 1}


def test_the_papers_settings_are_the_networks_defaults(tmp_path: Path) -> None:
    schema = built(tmp_path).network.schema
    assert (schema.predict, schema.predicted[0].source, schema.predicted[0].target) == (
        "cites",
        "paper",
        "paper",
    )
    assert (schema.text_rich, schema.textless) == (("paper",), ("author", "venue"))
    assert schema.neighbors == {"paper": 5, "author": 3, "venue": 1}
    assert (schema.max_tokens, schema.test_batch_size) == (32, 100)
    assert set(PUBLISHED) == {*schema.node_types, *(r.name for r in schema.relations)}
    assert len(set(FIELDS)) == 30


def test_years_can_be_chosen(tmp_path: Path) -> None:
    network = built(tmp_path, first_year=1989, last_year=2000).network
    assert network.ids("paper") == ["1", "3", "6"]
    assert edges_of(network, "cites") == [("1", "3"), ("3", "1"), ("6", "1")]
    with pytest.raises(InputError, match="first_year is 2001, expected at most last_year, which is 2000"):
        DblpOptions(first_year=2001, last_year=2000)


def test_tiny_chunks_give_the_same_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "again").mkdir()
    whole = built(tmp_path).network
    sizes = in_small_chunks(monkeypatch, 2)
    assert built(tmp_path / "again").network.fingerprint == whole.fingerprint
    assert sizes == [2, 2, 2, 2]


def test_the_file_itself_may_be_given_and_be_packed(tmp_path: Path) -> None:
    plain = write_array(tmp_path / "dblp.v12.json", PAPERS)
    sample = tmp_path / "sample.json.gz"
    sample.write_bytes(gzip.compress(plain.read_bytes()))
    networks = [build_dblp(raw, tmp_path / raw.stem, DblpOptions()).network for raw in (plain, sample)]
    assert networks[0].fingerprint == networks[1].fingerprint


def cut_in_a_record(data: bytes) -> bytes:
    return data[:-30]


def without_bracket(data: bytes) -> bytes:
    return data.rstrip().removesuffix(b"]")


def nothing(data: bytes) -> bytes:
    return b""


def of_other_kind(data: bytes) -> bytes:
    return json.dumps([{"id": "53e9ab9eb7602d970354a97e", "title": "x"}]).encode()


def outside(data: bytes) -> bytes:
    return b'[{"id": 1, "title": "x", "year": 1900}]'


MISTAKES = [
    (
        cut_in_a_record,
        "dblp.v12.json: line 9: the last record has no end: the file is truncated; download it again.",
    ),
    (
        without_bracket,
        "dblp.v12.json: line 9: the array has no closing bracket: the file is truncated; download it",
    ),
    (nothing, "dblp.v12.json: no record is usable."),
    (of_other_kind, 'record 1, id: found "53e9ab9eb7602d970354a97e", expected a whole number.'),
    (outside, "dblp.v12.json: none of the 1 records is usable (1 year not 1990 to 2020)."),
]


@pytest.mark.parametrize(("damage", "message"), MISTAKES, ids=[d.__name__ for d, _ in MISTAKES])
def test_a_damaged_file_is_one_sentence_and_leaves_nothing(damage: Any, message: str, tmp_path: Path) -> None:
    raw = write_array(tmp_path / "dblp.v12.json", PAPERS)
    raw.write_bytes(damage(raw.read_bytes()))
    with pytest.raises(InputError) as caught:
        build_dblp(tmp_path, tmp_path / "new" / "net", DblpOptions())
    assert message in str(caught.value)
    assert files(tmp_path) == {"dblp.v12.json"}


def test_a_missing_file_is_told_with_its_place(tmp_path: Path) -> None:
    message = r"no dblp\.v12\.json; download from https://originalstatic\.aminer\.cn/misc/dblp\.v12\.7z"
    with pytest.raises(InputError, match=message):
        build_dblp(tmp_path, tmp_path / "net", DblpOptions())
