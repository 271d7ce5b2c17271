"""Tables that grow while records are read, and the network that is built of them."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from heterformer.datasets.raw_build import RawTables, build_from_raw, filled
from heterformer.errors import InputError
from heterformer.network.store import Network
from heterformer.network.tables.json_array import Sizes
from tests.networks import edges_of, files

SCHEMA = pa.schema({"id": pa.int64(), "title": pa.string()})
SPECIFICATION = {
    "name": "small",
    "nodes": {"paper": {"file": "papers", "text": "title"}},
    "relations": {
        "cites": {"from": "paper", "to": "paper", "file": "cites", "columns": ["source", "target"]}
    },
}


@pytest.fixture
def tables(tmp_path: Path) -> Iterator[RawTables]:
    with RawTables(tmp_path / "tables") as found:
        yield found


def write_papers(path: Path, ids: list[Any]) -> Path:
    path.write_text("".join(json.dumps({"id": i, "title": f"t{i}"}) + "\n" for i in ids))
    return path


def fill(tables: RawTables) -> None:
    tables.write("papers", pl.DataFrame({"id": [1, 2], "title": ["One", "Two"]}))
    tables.write("papers", pl.DataFrame({"id": [3], "title": ["Three"]}))
    tables.write("cites", pl.DataFrame({"source": [1, 2], "target": [3, 9]}))


def test_the_first_record_of_an_id_counts_in_whatever_chunk_or_file(
    tmp_path: Path, tables: RawTables
) -> None:
    sizes = Sizes(frame_rows=2)
    one = write_papers(tmp_path / "one.json", [1, 1, 2, None, 1])
    two = write_papers(tmp_path / "two.json", [3, 2])
    seen: set[Any] = set()
    frames = [
        f["id"].to_list() for file in (one, two) for f in tables.records(file, SCHEMA, "id", seen, sizes)
    ]
    assert frames == [[1], [2], [], [3]]
    counts = {name: (tally.read, tally.kept) for name, tally in tables.tallies.items()}
    assert counts == {"one.json": (5, 2), "two.json": (2, 1)}
    met = tables.tallies["one.json"].dropped["duplicate id"]
    assert (met.count, met.examples) == (2, ["1", "1"])


def test_what_is_neither_wanted_nor_unwanted_is_left_out(tmp_path: Path, tables: RawTables) -> None:
    frame = pl.DataFrame({"id": [1, 2, 3], "year": [1999, None, 2001]})
    kept = tables.kept(tmp_path / "raw", frame, pl.col("year") < 2000, "too late", "id")
    assert kept.to_dict(as_series=False) == {"id": [1], "year": [1999]}
    assert tables.tallies["raw"].dropped["too late"].examples == ["2", "3"]


def test_pieces_are_row_groups_of_one_table(tables: RawTables) -> None:
    fill(tables)
    assert tables.scan("papers").collect()["title"].to_list() == ["One", "Two", "Three"]
    metadata = pq.ParquetFile(tables.folder / "papers.parquet").metadata
    assert [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)] == [2, 1]


def test_a_table_can_be_derived_from_another(tables: RawTables) -> None:
    fill(tables)
    tables.derive("late", tables.scan("papers").filter(pl.col("id") > 1))
    assert pl.read_parquet(tables.folder / "late.parquet")["id"].to_list() == [2, 3]


def test_a_table_without_any_piece_is_one_sentence(tmp_path: Path, tables: RawTables) -> None:
    tables.tally(tmp_path / "raw.json")
    with pytest.raises(InputError, match=r"^raw\.json: no record is usable\.$"):
        tables.scan("papers")


def test_the_network_is_built_and_the_tables_are_gone(tmp_path: Path) -> None:
    built = build_from_raw(tmp_path / "deep" / "net", SPECIFICATION, fill, {"paper": 7})
    assert edges_of(built.network, "cites") == [("1", "3")]
    assert built.network.path == tmp_path / "deep" / "net"
    assert (built.published, built.split) == ({"paper": 7}, None)
    assert files(tmp_path / "deep") == {"net", *(f"net/{name}" for name in files(built.network.path))}
    assert {path.name for path in built.network.path.iterdir()} == {
        "network.json",
        "digests.json",
        "nodes",
        "adjacency",
    }


def test_a_split_is_written_into_the_network(tmp_path: Path) -> None:
    def split(tables: RawTables, network: Network, path: Path) -> None:
        ids = network.ids("paper")
        pl.DataFrame({"part": ["test"], "query": [ids[0]], "key": [ids[2]]}).write_parquet(path)

    built = build_from_raw(tmp_path / "net", SPECIFICATION, fill, split=split)
    assert built.split == tmp_path / "net" / "split.parquet"
    assert pl.read_parquet(built.split).rows() == [("test", "1", "3")]


def test_what_the_build_finds_wrong_is_said_of_the_raw_file(tmp_path: Path) -> None:
    def fill_with_strangers(tables: RawTables) -> None:
        tables.tally(tmp_path / "raw.json")
        tables.write("papers", pl.DataFrame({"id": [1], "title": ["One"]}))
        tables.write("cites", pl.DataFrame({"source": [1], "target": [9]}))

    with pytest.raises(
        InputError, match=r"^raw\.json: all rows of relation 'cites' are dropped \(unknown paper"
    ):
        build_from_raw(tmp_path / "net", SPECIFICATION, fill_with_strangers)
    assert files(tmp_path) == set()


def test_a_full_disk_is_one_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    def fill_up(tables: RawTables) -> None:
        fill(tables)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(
        InputError, match=r"net: could not be written \(No space left on device\); nothing was left"
    ):
        build_from_raw(tmp_path / "new" / "net", SPECIFICATION, fill_up)
    assert files(tmp_path) == set()


def test_filled_is_text_or_nothing() -> None:
    frame = pl.DataFrame({"name": [" a ", "", " ", None]})
    assert frame.select(filled("name"))["name"].to_list() == ["a", None, None, None]
