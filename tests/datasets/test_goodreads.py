"""Goodreads from raw files of the published shape, with everything odd that such files may hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from heterformer.datasets.goodreads import LABELS, PUBLISHED, GoodreadsOptions, build_goodreads
from heterformer.datasets.raw_build import DatasetBuild
from heterformer.errors import InputError
from tests.datasets.raw import dropped, in_small_chunks, write_lines
from tests.networks import edges_of, files, nodes_of


def shelves(*names: str) -> list[dict[str, str]]:
    return [{"count": "3", "name": name} for name in names]


BOOKS: list[dict[str, Any]] = [
    {
        "book_id": "10",
        "title": "W.C. Fields: A Life — “on film”",
        "title_without_series": "W.C. Fields",
        "description": "A\nlong {life}.",
        "similar_books": ["11", "12", "99", "10", "11"],  # 12 has none itself, 99 is unknown, 11 there twice
        "authors": [{"author_id": "7", "role": ""}, {"author_id": "8", "role": "Editor"}],
        "publisher": "St. Martin's",
        "language_code": "eng",
        "format": "Paperback",
        "popular_shelves": shelves("to-read", "poetry", "read-2016", "my-reads", "ab", "poetry", "films"),
        "isbn": "0312853122",
        "ratings_count": "3",
    },
    {
        "book_id": "11",
        "title": "Second",
        "description": "",
        "similar_books": ["10"],
        "authors": [{"author_id": "7", "role": ""}, {"author_id": "", "role": ""}],
        "publisher": "",
        "language_code": "eng",
        "format": "",
        "popular_shelves": shelves("poetry", "films", "hubs", ""),
    },
    {"book_id": "12", "title": "Lonely", "similar_books": [], "popular_shelves": shelves("poetry")},
    {"book_id": "11", "title": "Second again", "similar_books": ["13"], "popular_shelves": shelves("hubs")},
    {"book_id": "13", "title": "日本語", "similar_books": ["11"], "popular_shelves": "", "authors": []},
    {"book_id": "14", "title": "Lonely, too", "similar_books": ""},
    {
        "book_id": "15",
        "similar_books": ["10", ""],
        "popular_shelves": shelves("to-read", "poetry", "films", "hubs"),
    },
    {"book_id": "", "title": "No id", "similar_books": ["10"]},
]
GENRES: list[dict[str, Any]] = [
    {"book_id": "11", "genres": {"poetry": 4, "fantasy, paranormal": 1}},
    {"book_id": "10", "genres": {"history, historical fiction, biography": 9, "cooking": 5, "romance": 0}},
    {"book_id": "13", "genres": {}},
    {"book_id": "11", "genres": {"children": 4}},
    {"book_id": "98", "genres": {"children": 4}},
    {"genres": {"fiction": 1}},
]


def built(folder: Path, least: int = 3, most: int = 3) -> DatasetBuild:
    write_lines(folder / "goodreads_books.json.gz", BOOKS)
    write_lines(folder / "goodreads_book_genres_initial.json.gz", GENRES)
    options = GoodreadsOptions(min_shelf_degree=least, max_shelf_degree=most)
    return build_goodreads(folder, folder / "net", options)


def test_nodes_edges_and_labels(tmp_path: Path) -> None:
    network = built(tmp_path).network
    assert nodes_of(network, "book") == {
        "10": {
            "text": "W.C. Fields: A Life — “on film” A\nlong {life}.",
            "label": ["history, historical fiction, biography"],
        },
        "11": {"text": "Second", "label": ["poetry", "fantasy, paranormal"]},
        "13": {"text": "日本語", "label": []},
        "15": {"text": "", "label": []},
    }
    assert network.names("book")[:3] == ["W.C. Fields: A Life — “on film”", "Second", "日本語"]
    assert edges_of(network, "similar") == [("10", "11"), ("11", "10"), ("13", "11"), ("15", "10")]
    # poetry and films are on three kept books each, to-read on two, hubs on two; the others break a rule.
    expected = [(book, shelf) for book in ("10", "11", "15") for shelf in ("poetry", "films")]
    assert edges_of(network, "shelved") == expected
    assert edges_of(network, "written_by") == [("10", "7"), ("10", "8"), ("11", "7")]
    assert edges_of(network, "published_by") == [("10", "St. Martin's")]
    assert edges_of(network, "written_in") == [("10", "eng"), ("11", "eng")]
    assert edges_of(network, "bound_as") == [("10", "Paperback")]
    assert network.label_kinds == {"book": "multi"}


def test_what_was_left_out_is_counted(tmp_path: Path) -> None:
    found = built(tmp_path)
    assert dropped(found) == {
        "goodreads_book_genres_initial.json.gz": {
            "no book_id": (1, ["null"]),
            "duplicate book_id": (1, ["11"]),
        },
        "goodreads_books.json.gz": {
            "no book_id": (1, [""]),
            "duplicate book_id": (1, ["11"]),
            "no similar book": (2, ["12", "14"]),
        },
        "books on shelves": {
            "shelf about reading": (3, ["read-2016", "my-reads", "ab"]),
            "shelf of too few or too many books": (4, ["hubs", "to-read"]),
        },
    }
    assert (found.raw["books on shelves"].read, found.raw["books on shelves"].kept) == (13, 6)
    assert (found.raw["goodreads_books.json.gz"].read, found.raw["goodreads_books.json.gz"].kept) == (8, 4)
    unknown = found.network.report.relations["similar"].dropped["unknown book"]
    assert (unknown.count, unknown.examples) == (2, ["10 -> 12", "10 -> 99"])


@pytest.mark.parametrize(
    ("least", "most", "expected"),
    [
        (1, 2, {"to-read", "hubs"}),
        (2, 3, {"to-read", "hubs", "poetry", "films"}),
        (3, 100_000, {"poetry", "films"}),
    ],
)
def test_shelves_are_chosen_by_degree_and_name(
    least: int, most: int, expected: set[str], tmp_path: Path
) -> None:
    assert set(built(tmp_path, least, most).network.ids("shelf")) == expected


def test_no_shelf_left_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"no shelf has 1,000 to 100,000 books; for a part of Goodreads choose a"
    ):
        built(tmp_path, 1_000, 100_000)
    assert (GoodreadsOptions().min_shelf_degree, GoodreadsOptions().max_shelf_degree) == (1_000, 100_000)
    with pytest.raises(InputError, match="min_shelf_degree is 5, max_shelf_degree 4, expected at least 1"):
        GoodreadsOptions(5, 4)


def test_no_book_left_is_told_as_that(tmp_path: Path) -> None:
    write_lines(tmp_path / "goodreads_books.json.gz", [{**book, "similar_books": []} for book in BOOKS[:3]])
    write_lines(tmp_path / "goodreads_book_genres_initial.json.gz", GENRES)
    with pytest.raises(InputError, match=r"none of the 3 records is usable \(3 no similar book\)"):
        build_goodreads(tmp_path, tmp_path / "net", GoodreadsOptions(1, 10))


def test_the_papers_settings_are_the_networks_defaults(tmp_path: Path) -> None:
    schema = built(tmp_path).network.schema
    assert (schema.predict, schema.text_rich) == ("similar", ("book",))
    fan_out = {"book": 5, "shelf": 5, "author": 2, "publisher": 1, "language_code": 1, "format": 1}
    assert schema.neighbors == fan_out
    assert (schema.max_tokens, schema.test_batch_size) == (64, 100)
    assert set(PUBLISHED) == {*schema.node_types, *(r.name for r in schema.relations)}
    assert len(set(LABELS)) == 10


def test_tiny_chunks_give_the_same_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "again").mkdir()
    whole = built(tmp_path).network
    sizes = in_small_chunks(monkeypatch, 3)
    assert built(tmp_path / "again").network.fingerprint == whole.fingerprint
    assert sizes == [3, 3, 3, 3, 2]


def test_a_file_cut_short_is_one_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    write_lines(tmp_path / "goodreads_book_genres_initial.json.gz", GENRES)
    books = write_lines(tmp_path / "goodreads_books.json.gz", BOOKS)
    books.write_bytes(books.read_bytes()[:-40])
    before = files(tmp_path)
    with pytest.raises(
        InputError, match=r"goodreads_books\.json\.gz: damaged gzip file .+ download it again"
    ):
        build_goodreads(tmp_path, tmp_path / "net", GoodreadsOptions(1, 10))
    assert files(tmp_path) == before


def test_a_missing_file_is_told_with_its_place(tmp_path: Path) -> None:
    write_lines(tmp_path / "goodreads_books.json", BOOKS)
    with pytest.raises(InputError, match=r"no goodreads_book_genres_initial\.json\.gz; download from http"):
        build_goodreads(tmp_path, tmp_path / "net", GoodreadsOptions())
