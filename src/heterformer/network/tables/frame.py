"""Frames that are in memory already."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from heterformer.errors import InputError
from heterformer.network.tables.column import Chunk, Column, selected


class FrameTable:
    """A polars or pandas frame, an Arrow table or a dict of columns."""

    def __init__(self, frame: Any, where: str) -> None:
        self.where = where
        self.frame = _as_polars(frame, where)
        self.size = int(self.frame.estimated_size())

    def chunks(self, columns: Sequence[Column]) -> Iterator[Chunk]:
        yield Chunk(selected(self.frame, columns, self.where, 0), 0, 1.0)


def _as_polars(frame: Any, where: str) -> pl.DataFrame:
    if isinstance(frame, pl.DataFrame):
        return frame
    if isinstance(frame, pl.LazyFrame):
        return frame.collect()
    if type(frame).__module__.startswith("pandas"):
        return pl.from_pandas(frame)
    if isinstance(frame, dict) or hasattr(frame, "__arrow_c_stream__"):
        return pl.DataFrame(frame)
    found = type(frame).__name__
    raise InputError(f"{where}: found {found}, expected a polars or pandas frame or an Arrow table.")
