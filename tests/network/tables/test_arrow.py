"""Arrow data of unknown origin: from Parquet files and as tables in memory."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from heterformer import InputError
from heterformer.network.tables import Column, FrameTable
from heterformer.network.tables.column import Kind
from heterformer.network.tables.parquet import ParquetTable

IDS = pa.array(["p1", "p2"])
OFFSETS = np.array([0, 2, 4], dtype=np.int32).tobytes()
NOT_UTF8 = pa.Array.from_buffers(pa.string(), 2, [None, pa.py_buffer(OFFSETS), pa.py_buffer(b"a\xffbb")])
MARS = pa.array([0, 1], pa.timestamp("ms", tz="Mars/Olympus"))


class Wrapped(pa.ExtensionType):  # type: ignore[misc]
    """Text under another name."""

    def __init__(self) -> None:
        super().__init__(pa.string(), "test.wrapped")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: Any, serialized: bytes) -> Wrapped:
        return cls()


@pytest.fixture(params=["parquet", "frame"])
def read(request: pytest.FixtureRequest, tmp_path: Any) -> Callable[[pa.Table, Kind], list[Any]]:
    """The values of column x, read as some kind."""

    def values(table: pa.Table, kind: Kind) -> list[Any]:
        if request.param == "parquet":
            pq.write_table(table, tmp_path / "t.parquet")
            source: Any = ParquetTable(tmp_path / "t.parquet")
            source.where = "t"
        else:
            source = FrameTable(table, "t")
        (chunk,) = source.chunks([Column("x", kind)])
        return list(chunk.columns[0].to_list())

    return values


@pytest.mark.parametrize(
    ("values", "kind", "message"),
    [
        (NOT_UTF8, "text", "t: column 'x': its text is not UTF-8; write the file again."),
        (NOT_UTF8, "id", "t: column 'x': its text is not UTF-8; write the file again."),
        (NOT_UTF8, "value", "t: column 'x': its text is not UTF-8; write the file again."),
        (
            MARS,
            "time",
            "t: column 'x' of type timestamp[ms, tz=Mars/Olympus] cannot be read (unable to parse",
        ),
        (
            pa.array([1.0, float("inf")]),
            "time",
            "t: row 2, column 'x': found inf, expected a number or a date",
        ),
        (pa.array([0, 1], pa.duration("s")), "time", "t: row 1, column 'x': found datetime.timedelta(0)"),
    ],
)
def test_what_cannot_be_read(values: Any, kind: Kind, message: str, read: Any) -> None:
    with pytest.raises(InputError) as caught:
        read(pa.table({"x": values}), kind)
    assert str(caught.value).startswith(message)


def test_two_columns_of_one_name(read: Any) -> None:
    with pytest.raises(InputError, match=r"^t: duplicate column 'x'\.$"):
        read(pa.Table.from_arrays([IDS, IDS], names=["x", "x"]), "id")


def test_two_columns_of_a_name_that_nobody_reads(read: Any) -> None:
    assert read(pa.Table.from_arrays([IDS, IDS, IDS], names=["x", "y", "y"]), "id") == ["p1", "p2"]


def test_durations_and_extension_types(read: Any) -> None:
    assert read(pa.table({"x": pa.array([0, 90061], pa.duration("s"))}), "value") == ["PT0S", "P1DT1H1M1S"]
    assert read(pa.table({"x": pa.ExtensionArray.from_storage(Wrapped(), IDS)}), "text") == ["p1", "p2"]
    one = uuid.uuid4()
    assert read(pa.table({"x": pa.array([one.bytes, None], pa.uuid())}), "id") == [str(one), None]


def test_a_time_that_is_not_a_number_is_missing(read: Any) -> None:
    assert read(pa.table({"x": pa.array([1.0, float("nan")])}), "time") == [1.0, None]
