"""Frames that are in memory already."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl
import pyarrow as pa

from heterformer.errors import InputError
from heterformer.network.tables.column import Chunk, Column, root_of, selected


class FrameTable:
    """A polars or pandas frame, an Arrow table or a dict of columns."""

    def __init__(self, frame: Any, where: str) -> None:
        kind = type(frame).__name__
        if not (isinstance(frame, (dict, pl.LazyFrame)) or hasattr(frame, "__arrow_c_stream__")):
            expected = "expected a polars or pandas frame or an Arrow table"
            raise InputError(f"{where}: found {kind}, {expected}.")
        self.where = where
        self.frame = frame
        self.size = 1  # read in one go

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
        return pl.DataFrame(frame)
    except InputError:
        raise
    except (pl.exceptions.PolarsError, pa.ArrowException, TypeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{where}: a column holds values of several kinds ({reason}).") from None


def _from_pandas(frame: Any, columns: Sequence[Column], where: str) -> pl.DataFrame:
    """Only the wanted columns: an odd one that nobody asks for is no reason to fail."""
    names = [str(name) for name in frame.columns]
    roots = list(dict.fromkeys(root_of(c.path, names, where) for c in columns))
    for root in roots:
        if names.count(root) > 1:
            raise InputError(f"{where}: column {root!r} is there more than once.")
    frame = frame.iloc[:, [names.index(root) for root in roots]]
    return pl.from_pandas(frame.rename(columns=str))
