"""Where raw files are found, and what is said when they are not."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from heterformer.datasets import raw_file
from heterformer.datasets.raw_file import RawFile, found_in, opened
from heterformer.errors import InputError

BOOKS = RawFile("books.json.gz", "https://example.org/books")
GENRES = RawFile("genres.json.gz", "https://example.org/genres")


def test_files_are_found_packed_or_not(tmp_path: Path) -> None:
    (tmp_path / "books.json").touch()
    (tmp_path / "genres.json.gz").touch()
    assert found_in(tmp_path, [BOOKS, GENRES]) == [tmp_path / "books.json", tmp_path / "genres.json.gz"]
    (tmp_path / "tweets.json.gz").touch()
    assert found_in(tmp_path, [RawFile("tweets.json", "")]) == [tmp_path / "tweets.json.gz"]


def test_the_published_form_comes_first(tmp_path: Path) -> None:
    (tmp_path / "books.json").touch()
    (tmp_path / "books.json.gz").touch()
    assert found_in(tmp_path, [BOOKS]) == [tmp_path / "books.json.gz"]


def test_a_missing_file_is_told_with_where_it_is_to_be_had_and_put(tmp_path: Path) -> None:
    (tmp_path / "books.json").touch()
    with pytest.raises(InputError) as caught:
        found_in(tmp_path, [BOOKS, GENRES])
    there = f"download from https://example.org/genres into {tmp_path}"
    assert str(caught.value) == f"{tmp_path}: no genres.json.gz; {there}."


def test_all_missing_files_are_told_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "nowhere"
    with pytest.raises(InputError) as caught:
        found_in(folder, [BOOKS, GENRES])
    found = "no such folder, expected a folder with books.json.gz and genres.json.gz"
    places = "download from https://example.org/books and https://example.org/genres"
    assert str(caught.value) == f"{folder}: {found}; {places}."


def test_a_file_in_the_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "books.json.gz").touch()
    with pytest.raises(InputError, match=r"books\.json\.gz: is a file, expected a folder with"):
        found_in(tmp_path / "books.json.gz", [BOOKS, GENRES])


@pytest.mark.parametrize(
    ("head", "found"),
    [
        (b"7z\xbc\xaf\x27\x1c", "a 7z archive, unpack it first"),
        (gzip.compress(b"{}", mtime=0), "a gzip file, expected a name that ends in .gz"),
        ('{"a": 1}'.encode("utf-16"), "UTF-16, expected UTF-8"),
    ],
    ids=["7z", "gzip", "utf-16"],
)
def test_a_file_that_is_still_packed_is_told_as_that(head: bytes, found: str, tmp_path: Path) -> None:
    path = tmp_path / "books.json"
    path.write_bytes(head)
    with pytest.raises(InputError, match=found), opened(path):
        pass


@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
def test_progress_goes_by_the_bytes_on_disk(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    advances: list[float] = []
    monkeypatch.setattr("heterformer.progress.Bar.advance", lambda _, amount: advances.append(amount))
    content = b"".join(b"%d\n" % (i**5) for i in range(50_000))
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    with opened(path, buffer=8192) as (stream, tell):
        while stream.read(100_000):
            tell()
    size = path.stat().st_size / raw_file.MEGABYTE
    assert sum(advances) == pytest.approx(size)
    assert max(advances) < 0.8 * size


def test_a_folder_in_the_place_of_a_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot be read \(Is a directory\)\.$"), opened(tmp_path):
        pass
