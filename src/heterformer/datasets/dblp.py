"""DBLP: papers, their authors and venues, from AMiner's citation network (version 12).

A publication of the years 1990 to 2020 is a node with its title; it cites others, has authors
(distinguished by number and name together) and a venue (by its raw name). Its labels are those of its fields
of study that Heterformer's paper lists.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import polars as pl
import pyarrow as pa
from tyro.conf import Positional, arg

from heterformer.datasets.raw_build import DatasetBuild, RawTables, build_from_raw, filled
from heterformer.datasets.raw_file import RawFile, found_in
from heterformer.errors import OptionError

FILE = RawFile("dblp.v12.json", "https://originalstatic.aminer.cn/misc/dblp.v12.7z (unpack it)")
RECORD = pa.schema(
    {
        "id": pa.int64(),
        "title": pa.string(),
        "year": pa.int64(),
        "authors": pa.list_(pa.struct({"id": pa.int64(), "name": pa.string()})),
        "venue": pa.struct({"raw": pa.string()}),
        "references": pa.list_(pa.int64()),
        "fos": pa.list_(pa.struct({"name": pa.string()})),
    }
)
SPECIFICATION = {
    "name": "dblp",
    "nodes": {
        "paper": {"file": "papers", "text": "title", "label": "fields", "time": "year"},
        "author": {"file": "authors", "name": "name"},
        "venue": {},
    },
    "relations": {
        "cites": {"from": "paper", "to": "paper", "file": "cites", "columns": ["source", "target"]},
        "written_by": {"from": "paper", "to": "author", "file": "written_by", "columns": ["paper", "author"]},
        "published_in": {"from": "paper", "to": "venue", "column": "venue"},
    },
    "predict": "cites",
    "neighbors": {"paper": 5, "author": 3, "venue": 1},
    "max_tokens": 32,
    "test_batch_size": 100,
}
PUBLISHED = {
    "paper": 3_597_191,
    "author": 2_717_797,
    "venue": 28_638,
    "cites": 36_787_329,
    "written_by": 10_212_497,
    "published_in": 3_633_613,
}
FIELDS = (
    "Artificial intelligence",
    "Mathematics",
    "Machine learning",
    "Computer vision",
    "Computer network",
    "Mathematical optimization",
    "Pattern recognition",
    "Distributed computing",
    "Data mining",
    "Real-time computing",
    "Algorithm",
    "Control theory",
    "Discrete mathematics",
    "Engineering",
    "Electronic engineering",
    "Theoretical computer science",
    "Combinatorics",
    "Knowledge management",
    "Multimedia",
    "Computer security",
    "World Wide Web",
    "Human-computer interaction",
    "Control engineering",
    "Parallel computing",
    "Information retrieval",
    "Software",
    "Artificial neural network",
    "Communication channel",
    "Simulation",
    "Natural language processing",
)


@dataclass(frozen=True)
class DblpOptions:
    """Which papers to keep; the defaults are those of Heterformer's paper."""

    first_year: int = 1990
    """Exclude papers of earlier years, and those without a year."""
    last_year: int = 2020
    """Exclude papers of later years."""

    def __post_init__(self) -> None:
        if self.first_year > self.last_year:
            problem = f"is {self.first_year}, expected at most {{last_year}}, which is {self.last_year}."
            raise OptionError(self, "first_year", problem)


def build_dblp(
    raw: Annotated[Path, Positional, arg(metavar="RAW")],
    out: Annotated[Path, Positional, arg(metavar="OUT")],
    options: Annotated[DblpOptions, arg(name="")],
) -> DatasetBuild:
    """Build the DBLP citation network: papers, authors and venues, from the 12 GB file dblp.v12.json.

    Args:
        raw: The folder with dblp.v12.json, or that file.
        out: The network folder to write; it must not exist.
        options: Which papers to keep.
    """
    file = raw if raw.is_file() else found_in(raw, [FILE])[0]
    return build_from_raw(out, SPECIFICATION, lambda tables: _fill(tables, file, options), PUBLISHED)


def _fill(tables: RawTables, file: Path, options: DblpOptions) -> None:
    years = pl.col("year").is_between(options.first_year, options.last_year)
    outside = f"year not {options.first_year} to {options.last_year}"
    for frame in tables.records(file, RECORD, "id", set()):
        papers = tables.kept(file, frame, years, outside, "id")
        venue = filled(pl.col("venue").struct.field("raw"))
        tables.write("papers", papers.select("id", "title", "year", fields=_fields(), venue=venue))
        cites = papers.select(source="id", target="references").explode("target")
        tables.write("cites", cites.drop_nulls("target"))
        tables.write("written_by", _written_by(papers))
    authors = tables.scan("written_by").select(id="author", name="name").unique("id", maintain_order=True)
    tables.derive("authors", authors)


def _fields() -> pl.Expr:
    """The listed ones among the fields of study. The raw file has a dash where the list has a hyphen."""
    spelt = {name.lower(): name for name in FIELDS}
    plain = pl.element().struct.field("name").str.replace_all("\u2013", "-", literal=True).str.to_lowercase()
    return (
        pl.col("fos")
        .list.eval(plain.replace_strict(spelt, default=None).drop_nulls())
        .list.unique(maintain_order=True)
    )


def _written_by(papers: pl.DataFrame) -> pl.DataFrame:
    """Authorships. An author's id is number and name, or whichever of the two there is."""
    rows = papers.select(paper="id", author="authors").explode("author").drop_nulls("author")
    name = filled(pl.col("author").struct.field("name"))
    number = pl.col("author").struct.field("id").cast(pl.String)
    both = pl.concat_str(number, name, separator=" ", ignore_nulls=True)
    return rows.select("paper", author=both, name=name).filter(pl.col("author") != "")
