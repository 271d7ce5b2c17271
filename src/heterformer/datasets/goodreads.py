"""Goodreads: books, their shelves, authors, publishers, languages and formats, from the UCSD Book Graph.

A book that has similar books is a node with title and description. Shelves are what readers filed it under;
those that are about the reading, and those of too few or too many books, are left out. Labels are genres.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import polars as pl
import pyarrow as pa
from tyro.conf import Positional, arg

from heterformer.datasets.raw_build import DatasetBuild, RawTables, build_from_raw, filled, textless
from heterformer.datasets.raw_file import RawFile, found_in
from heterformer.errors import InputError, OptionError
from heterformer.network.build.report import EXAMPLES, Tally

PAGE = "https://sites.google.com/eng.ucsd.edu/ucsdbookgraph/home"
BOOKS, GENRES = (
    RawFile("goodreads_books.json.gz", PAGE),
    RawFile("goodreads_book_genres_initial.json.gz", PAGE),
)
LABELS = (
    "children",
    "fiction",
    "poetry",
    "young-adult",
    "history, historical fiction, biography",
    "fantasy, paranormal",
    "non-fiction",
    "mystery, thriller, crime",
    "comics, graphic",
    "romance",
)
BOOK_RECORD = pa.schema(
    {
        "book_id": pa.string(),
        "title": pa.string(),
        "description": pa.string(),
        "similar_books": pa.list_(pa.string()),
        "authors": pa.list_(pa.struct({"author_id": pa.string()})),
        "publisher": pa.string(),
        "language_code": pa.string(),
        "format": pa.string(),
        "popular_shelves": pa.list_(pa.struct({"name": pa.string()})),
    }
)
GENRE_RECORD = pa.schema({"book_id": pa.string(), "genres": pa.struct({name: pa.int64() for name in LABELS})})
SPECIFICATION = {
    "name": "goodreads",
    "nodes": {
        "book": {
            "file": "books",
            "id": "book_id",
            "text": ["title", "description"],
            "label": "genres",
            "name": "title",
        },
        **textless("shelf", "author", "publisher", "language_code", "format"),
    },
    "relations": {
        "similar": {"from": "book", "to": "book", "file": "similar", "columns": ["book", "other"]},
        "shelved": {"from": "book", "to": "shelf", "file": "shelved", "columns": ["book", "shelf"]},
        "written_by": {"from": "book", "to": "author", "file": "written_by", "columns": ["book", "author"]},
        "published_by": {"from": "book", "to": "publisher", "column": "publisher"},
        "written_in": {"from": "book", "to": "language_code", "column": "language_code"},
        "bound_as": {"from": "book", "to": "format", "column": "format"},
    },
    "predict": "similar",
    "neighbors": {"book": 5, "shelf": 5, "author": 2, "language_code": 1, "publisher": 1, "format": 1},
    "max_tokens": 64,
    "test_batch_size": 100,
}
PUBLISHED = {
    "book": 1_097_438,
    "shelf": 6_632,
    "author": 205_891,
    "format": 768,
    "publisher": 62_934,
    "language_code": 139,
    "similar": 11_745_415,
    "shelved": 27_599_160,
    "written_by": 1_089_145,
    "bound_as": 588_677,
    "published_by": 591_456,
    "written_in": 485_733,
}


@dataclass(frozen=True)
class GoodreadsOptions:
    """Which shelves to keep; the defaults are those of Heterformer's paper, for the whole of Goodreads."""

    min_shelf_degree: int = 1_000
    """Exclude shelves of fewer books."""
    max_shelf_degree: int = 100_000
    """Exclude shelves of more books."""

    def __post_init__(self) -> None:
        if not 1 <= self.min_shelf_degree <= self.max_shelf_degree:
            values = f"is {self.min_shelf_degree}, {{max_shelf_degree}} {self.max_shelf_degree}"
            problem = f"{values}, expected at least 1 for the first and no less for the second."
            raise OptionError(self, "min_shelf_degree", problem)


def build_goodreads(
    raw: Annotated[Path, Positional, arg(metavar="RAW")],
    out: Annotated[Path, Positional, arg(metavar="OUT")],
    options: Annotated[GoodreadsOptions, arg(name="")],
) -> DatasetBuild:
    """Build the Goodreads network: similar books with shelves, authors, publishers, languages and formats.

    Args:
        raw: The folder with goodreads_books.json.gz and goodreads_book_genres_initial.json.gz.
        out: The network folder to write; it must not exist.
        options: Which shelves to keep.
    """
    books, genres = found_in(raw, [BOOKS, GENRES])
    return build_from_raw(out, SPECIFICATION, lambda tables: _fill(tables, books, genres, options), PUBLISHED)


def _fill(tables: RawTables, books: Path, genres: Path, options: GoodreadsOptions) -> None:
    labels = _labels(tables, genres)
    similar = pl.col("similar_books").list.len() > 0
    tally = tables.tallies.setdefault("books on shelves", Tally())
    for frame in tables.records(books, BOOK_RECORD, "book_id", set()):
        kept = tables.kept(books, frame, similar, "no similar book", "book_id").join(
            labels, on="book_id", how="left", maintain_order="left"
        )
        text = ("book_id", "title", "description", "genres")
        tables.write("books", kept.select(*text, *map(filled, ("publisher", "language_code", "format"))))
        tables.write("similar", _pairs(kept, "other", "similar_books"))
        tables.write("written_by", _pairs(kept, "author", "authors", "author_id"))
        filed = _pairs(kept, "shelf", "popular_shelves", "name").unique(maintain_order=True)
        tables.write("shelves", _topics(filed, tally))
    tables.check_kept(books.name)
    degrees = tables.scan("shelves").group_by("shelf").len()
    between = pl.col("len").is_between(options.min_shelf_degree, options.max_shelf_degree)
    counted = degrees.with_columns(kept=between).collect(engine="streaming")
    shelves, others = counted.filter("kept")["shelf"], counted.filter(~pl.col("kept"))
    tally.drop(
        "shelf of too few or too many books", int(others["len"].sum()), others["shelf"].sort().head(EXAMPLES)
    )
    tally.kept -= int(others["len"].sum())
    if shelves.is_empty():
        reason = f"no shelf has {options.min_shelf_degree:,} to {options.max_shelf_degree:,} books"
        problem = f"{reason}; for a part of Goodreads choose a smaller {{min_shelf_degree}}."
        raise OptionError(options, (), problem, place=f"{books}: ")
    tables.derive("shelved", tables.scan("shelves").filter(pl.col("shelf").is_in(shelves.implode())))


def _topics(rows: pl.DataFrame, tally: Tally) -> pl.DataFrame:
    """Rows of shelves that are about books; the others are counted."""
    about = rows.with_columns(topic=_is_topic())
    others = about.filter(~pl.col("topic"))
    tally.read += len(rows)
    tally.kept += len(rows) - len(others)
    tally.drop("shelf about reading", len(others), others["shelf"].head(EXAMPLES))
    return about.filter("topic").drop("topic")


def _labels(tables: RawTables, genres: Path) -> pl.DataFrame:
    """The genres of every book: those with any votes."""
    voted = [pl.when(pl.col("genres").struct.field(name) > 0).then(pl.lit(name)) for name in LABELS]
    frames = [
        frame.select("book_id", genres=pl.concat_list(voted).list.drop_nulls().cast(pl.List(pl.Enum(LABELS))))
        for frame in tables.records(genres, GENRE_RECORD, "book_id", set())
    ]
    if not frames:
        raise InputError(f"{genres}: the file is empty.")
    return pl.concat(frames)


def _pairs(books: pl.DataFrame, other: str, column: str, within: str | None = None) -> pl.DataFrame:
    """A list-valued column as rows of a relation, without the empty ones."""
    rows = books.select(pl.col("book_id").alias("book"), pl.col(column).alias(other)).explode(other)
    value = pl.col(other) if within is None else pl.col(other).struct.field(within)
    return rows.select("book", filled(value).alias(other)).drop_nulls()


def _is_topic() -> pl.Expr:
    """Shelves such as 'to-read' are about the reader; the paper leaves out what these rules catch."""
    shelf = pl.col("shelf")
    return (shelf.str.len_chars() >= 3) & ~shelf.str.starts_with("read") & ~shelf.str.ends_with("reads")
