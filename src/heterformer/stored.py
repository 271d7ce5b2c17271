"""The one door through which stored files are read: a damaged one ends in a sentence, never in a signal.

Arrow trusts what it reads: a wrong offset makes it read elsewhere in memory. So whatever is handed out here
was validated in full, batch by batch as it is read; Parquet pages carry checksums. NumPy's arrays are mapped
only if their files are as long as their headers say.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.lib import format as npy
from numpy.typing import NDArray

from heterformer.digests import check_footer
from heterformer.files import damaged, reading

NUMBERS_AT_ONCE = 1 << 20  # numbers that are checked at a time
COPY_RUN = "copy the run again or train it anew"  # the remedy for a damaged run


def read_json(path: Path, remedy: str = "") -> Any:
    """The contents of a JSON file."""
    with reading(path, remedy):
        return json.loads(path.read_text(encoding="utf-8"))


def map_array(path: Path, remedy: str = "", kind: str = "", ndim: int = 1) -> NDArray[Any]:
    """A stored array, memory-mapped, of a type such as 'i8', or of any number type, and as many axes."""
    with reading(path, remedy):
        with path.open("rb") as file:
            version = npy.read_magic(file)
            read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            shape, fortran, dtype = read_header(file)
            start = file.tell()
        fits = dtype.str[1:] == kind if kind else dtype.kind in "fiu"
        if not fits or len(shape) != ndim or fortran:
            expected_type = f"expected {kind or 'numbers'} along {ndim} axes"
            raise damaged(path, f"found the type {dtype} and the shape {shape}, {expected_type}", remedy)
        expected = start + dtype.itemsize * int(np.prod(shape, dtype=object))
        if path.stat().st_size != expected:
            raise damaged(path, f"it has {path.stat().st_size:,} bytes, expected {expected:,}", remedy)
        if not np.prod(shape, dtype=object):
            return np.empty(shape, dtype)
        return np.asarray(np.memmap(path, dtype, "r", start, shape))  # indexing a np.memmap itself is slow


def check_range(values: NDArray[Any], low: int, stop: int, path: Path, remedy: str = "") -> None:
    """Refuse numbers that are not from ``low`` up to, but not including, ``stop``."""
    for start in range(0, len(values), NUMBERS_AT_ONCE):
        part = values[start : start + NUMBERS_AT_ONCE]
        if int(part.min()) < low or int(part.max()) >= stop:
            wrong = start + int(((part < low) | (part >= stop)).argmax())
            problem = f"number {wrong:,} is {values[wrong]}"
            raise damaged(path, f"{problem}, expected {low} to {stop - 1:,}", remedy)


def check_offsets(
    offsets: NDArray[np.int64], last: int, path: Path, remedy: str = "", longest: int | None = None
) -> None:
    """Refuse offsets that do not ascend from 0 to ``last``, by at most ``longest`` at once."""
    if not len(offsets) or offsets[0] != 0 or offsets[-1] != last:
        raise damaged(path, f"its offsets do not run from 0 to {last:,}", remedy)
    for start in range(0, len(offsets) - 1, NUMBERS_AT_ONCE):
        lengths = np.diff(offsets[start : start + NUMBERS_AT_ONCE + 1])
        wrong = (lengths < 0) | (lengths > (last if longest is None else longest))
        if wrong.any():
            raise damaged(path, f"number {start + int(wrong.argmax()) + 1:,} cannot be right", remedy)


def read_arrow(path: Path, remedy: str = "") -> pa.Table:
    """An Arrow table, memory-mapped. Its columns are not to be used before ``validated`` has seen them."""
    with reading(path, remedy):
        table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
        table.validate()  # lengths and buffers, not contents
        return table


def validated(values: Any, path: Path, remedy: str = "") -> Any:
    """An Arrow array whose offsets and UTF-8 were looked at, all of them."""
    with reading(path, remedy):
        values.validate(full=True)
        return values


def as_series(values: Any, path: Path, remedy: str = "") -> pl.Series:
    """A validated Arrow array as a polars series."""
    with reading(path, remedy):
        series = pl.from_arrow(values)
        assert isinstance(series, pl.Series)
        return series


@contextmanager
def open_parquet(path: Path, remedy: str = "") -> Iterator[pq.ParquetFile]:
    """A Parquet table whose footer and pages are checked as far as they carry digests."""
    with reading(path, remedy):
        check_footer(path)
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            yield file


def parquet_batches(
    path: Path, columns: Sequence[str] | None = None, rows: int = 1 << 16, remedy: str = ""
) -> Iterator[pa.RecordBatch]:
    """The batches of a Parquet table, each validated in full."""
    with open_parquet(path, remedy) as file:
        for batch in file.iter_batches(rows, columns=None if columns is None else list(columns)):
            batch.validate(full=True)
            yield batch


def read_parquet(path: Path, remedy: str = "") -> pl.DataFrame:
    """A whole Parquet table as a polars frame."""
    with open_parquet(path, remedy) as file:
        table = file.read()
        table.validate(full=True)
        frame = pl.from_arrow(table)
        assert isinstance(frame, pl.DataFrame)
        return frame


def parquet_metadata(path: Path, remedy: str = "") -> dict[str, str]:
    """What a writer noted in a Parquet table, by its own names."""
    with open_parquet(path, remedy) as file:
        return {key.decode(): value.decode() for key, value in (file.metadata.metadata or {}).items()}
