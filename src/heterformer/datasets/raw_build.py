"""From published files to a network: tables are written as records are read, then built."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from heterformer.datasets.json_records import record_frames
from heterformer.errors import InputError
from heterformer.files import new_folder
from heterformer.network.build import build_network
from heterformer.network.build.report import EXAMPLES, Tally
from heterformer.network.schema import NodeType
from heterformer.network.spec import NetworkSpec
from heterformer.network.store import Network
from heterformer.network.tables import Table
from heterformer.network.tables.json_array import Sizes
from heterformer.network.tables.parquet import ParquetTable
from heterformer.progress import waiting


@dataclass(frozen=True)
class DatasetBuild:
    """A network built from a known data set, and its report."""

    network: Network
    raw: dict[str, Tally] = field(default_factory=dict)  # records read, kept and left out, by file
    published: dict[str, int] = field(default_factory=dict)  # the paper's counts, by node type and relation
    split: Path | None = None  # fixed pairs that came with the data


class RawTables:
    """Parquet tables that grow while raw records are read, and the tally of those records."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tallies: dict[str, Tally] = {}  # by file, and by what is counted besides records
        self.files: dict[str, Path] = {}
        self._writers: dict[str, pq.ParquetWriter] = {}

    def __enter__(self) -> RawTables:
        self.folder.mkdir()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        for writer in self._writers.values():
            writer.close()

    def tally(self, file: Path) -> Tally:
        self.files[file.name] = file
        return self.tallies.setdefault(file.name, Tally())

    def check_kept(self, *names: str) -> None:
        """Raise an error with the reasons if no record of these files (by default all) is left."""
        tallies = [self.tallies[name] for name in names or self.files]
        read = sum(tally.read for tally in tallies)
        if read and not any(tally.kept for tally in tallies):
            why = ", ".join(f"{d.count:,} {reason}" for t in tallies for reason, d in t.dropped.items())
            where = ", ".join(str(self.files[name]) for name in names or self.files)
            raise InputError(f"{where}: none of the {read:,} records is usable ({why}).")

    def records(
        self, file: Path, schema: pa.Schema, key: str, seen: set[Any], sizes: Sizes | None = None
    ) -> Iterator[pl.DataFrame]:
        """The records of a file in chunks; those without a ``key`` or with a duplicate one are counted.

        ``seen`` are the keys of earlier records, to which those of this file are added.
        """
        tally = self.tally(file)
        for frame in record_frames(file, schema, sizes):
            tally.read += len(frame)
            tally.kept += len(frame)
            present = pl.col(key).is_not_null() & (pl.col(key).cast(pl.String).str.strip_chars() != "")
            frame = self.kept(file, frame, present, f"no {key}", key)
            first = []
            for value in frame[key].to_list():
                first.append(value not in seen)
                seen.add(value)
            yield self.kept(file, frame, pl.lit(pl.Series(first, dtype=pl.Boolean)), f"duplicate {key}", key)

    def kept(
        self, file: Path, frame: pl.DataFrame, condition: pl.Expr, reason: str, key: str
    ) -> pl.DataFrame:
        """The rows of ``frame`` for which ``condition`` is true; the others are counted under ``reason``."""
        frame = frame.with_columns(condition.fill_null(False).alias("__wanted"))
        others = frame.filter(~pl.col("__wanted"))
        tally = self.tally(file)
        tally.drop(reason, len(others), others[key].head(EXAMPLES).cast(pl.String).fill_null("null"))
        tally.kept -= len(others)
        return frame.filter("__wanted").drop("__wanted")

    def write(self, name: str, frame: pl.DataFrame) -> None:
        """Append rows to the table ``name``."""
        table = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
        if name not in self._writers:
            self._writers[name] = pq.ParquetWriter(self._path(name), table.schema, compression="zstd")
        self._writers[name].write_table(table)

    def scan(self, name: str) -> pl.LazyFrame:
        """A complete table, which is closed for writing."""
        if name not in self._writers:
            raise InputError(f"{', '.join(self.files)}: no record is usable.")
        self._writers[name].close()
        return pl.scan_parquet(self._path(name), glob=False)

    def derive(self, name: str, rows: pl.LazyFrame) -> None:
        """Write the table ``name`` from others, as a stream."""
        with waiting(f"writing {name}"):
            rows.sink_parquet(self._path(name))

    def table(self, name: str) -> Table:
        """A complete table for ``build_network``; its errors name the raw files."""
        table = ParquetTable(self._path(name))
        table.where = ", ".join(self.files)
        return table

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.parquet"


def build_from_raw(
    out: Path,
    spec: Mapping[str, Any],
    fill: Callable[[RawTables], None],
    published: Mapping[str, int] | None = None,
    split: Callable[[RawTables, Network, Path], None] | None = None,
) -> DatasetBuild:
    """Let ``fill`` write the tables that ``spec`` names as files, and build the network ``out`` of them.

    ``split``, if there are fixed pairs, writes them to the path it is given. The tables are beside ``out``
    while they are needed; whatever fails, nothing is left behind.
    """
    parsed = NetworkSpec.parse({"missing": [], **spec}, where=str(spec["name"]))
    with new_folder(out) as folder:
        with RawTables(folder / "tables") as tables:
            fill(tables)
            tables.check_kept()
        built = build_network(
            parsed,
            folder / "network",
            node_tables={t: tables.table(n.file) for t, n in parsed.nodes.items() if n.file},
            relation_tables={n: tables.table(r.file) for n, r in parsed.relations.items() if r.file},
        )
        if split is not None:
            split(tables, built, folder / "split.parquet")
        shutil.rmtree(folder / "tables")
        for path in (folder / "network").iterdir():
            path.rename(folder / path.name)
        (folder / "network").rmdir()
    return DatasetBuild(
        Network.open(out), tables.tallies, dict(published or {}), out / "split.parquet" if split else None
    )


def textless(*types: NodeType) -> dict[NodeType, dict[str, Any]]:
    """Node types without a table: their nodes are those that relations name."""
    return {node_type: {} for node_type in types}


def filled(column: str | pl.Expr) -> pl.Expr:
    """Stripped text, null if it is empty."""
    stripped = (pl.col(column) if isinstance(column, str) else column).str.strip_chars()
    return pl.when(stripped != "").then(stripped)
