"""Frames in memory as tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl
import pyarrow as pa

from heterformer.errors import InputError
from heterformer.network.tables.arrow import as_frame
from heterformer.network.tables.column import Chunk, Column, root_of, selected


class FrameTable:
    """A polars or pandas frame, an Arrow table or a dict of columns."""

    def __init__(self, frame: Any, where: str) -> None:
        tabular = isinstance(frame, (dict, pl.LazyFrame)) or hasattr(frame, "__arrow_c_stream__")
        if not tabular or type(frame).__name__ == "Series":  # one column, which Arrow reads as well
            expected = "expected a polars or pandas frame, an Arrow table or a dict of columns"
            raise InputError(f"{where}: found {type(frame).__name__}, {expected}.")
        self.where = where
        self.frame = frame
        self.size = 1  # read as one chunk

    def chunks(self, columns: Sequence[Column]) -> Iterator[Chunk]:
        frame = _as_polars(self.frame, columns, self.where)
        yield Chunk(selected(frame, columns, self.where, 0), 0, 1.0)


def _as_polars(frame: Any, columns: Sequence[Column], where: str) -> pl.DataFrame:
    if isinstance(frame, pl.DataFrame):
        return frame
    if isinstance(frame, pl.LazyFrame):
        return frame.collect()
    try:
        if type(frame).__module__.startswith("pandas"):
            return _from_pandas(frame, columns, where)
        if isinstance(frame, (pa.Table, pa.RecordBatch)):
            _check_distinct(frame.schema.names, columns, where)
            roots = dict.fromkeys(root_of(c.path, frame.schema.names, where) for c in columns)
            return as_frame(frame.select(list(roots)), where)
        return pl.DataFrame(frame)
    except InputError:
        raise
    except pl.exceptions.ShapeError as error:
        raise InputError(f"{where}: columns differ in length ({str(error).splitlines()[0]}).") from None
    except (pl.exceptions.PolarsError, pa.ArrowException, TypeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{where}: a column mixes types ({reason}); convert it to one type.") from None


def _check_distinct(names: Sequence[str], columns: Sequence[Column], where: str) -> None:
    for root in {root_of(c.path, names, where) for c in columns}:
        if names.count(root) > 1:
            raise InputError(f"{where}: duplicate column {root!r}.")


def _from_pandas(frame: Any, columns: Sequence[Column], where: str) -> pl.DataFrame:
    """Only the columns to read: one of mixed types that is not read is not an error."""
    names = [str(name) for name in frame.columns]
    roots = list(dict.fromkeys(root_of(c.path, names, where) for c in columns))
    _check_distinct(names, columns, where)
    frame = frame.iloc[:, [names.index(root) for root in roots]]
    return pl.from_pandas(frame.rename(columns=str))
