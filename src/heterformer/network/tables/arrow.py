"""Arrow data of unknown origin as polars frames: checked, with one sentence about what cannot be read."""

from __future__ import annotations

from typing import Any, cast

import polars as pl
import pyarrow as pa

from heterformer.errors import InputError


def as_frame(batch: Any, where: str) -> pl.DataFrame:
    """A record batch or table of Arrow as a polars frame; extension types are read as what they store."""
    columns = {name: _checked(batch.column(name), name, where) for name in batch.schema.names}
    series = {}
    for name, values in columns.items():
        try:
            series[name] = cast(pl.Series, pl.from_arrow(values))
        except (
            pl.exceptions.PolarsError,
            pl.exceptions.PanicException,
            pa.ArrowException,
            ValueError,
        ) as error:
            reason = " ".join(str(error).split(".")[0].split())
            problem = f"column {name!r} of type {values.type} cannot be read ({reason})"
            raise InputError(f"{where}: {problem}; convert it to text, numbers or dates.") from None
    return pl.DataFrame(series)


def _checked(values: Any, name: str, where: str) -> Any:
    try:
        values.validate(full=True)
    except pa.ArrowInvalid as error:
        reason = " ".join(str(error).split())
        problem = "is not UTF-8" if "UTF8" in reason else f"is damaged ({reason})"
        raise InputError(f"{where}: column {name!r}: its text {problem}; write the file again.") from None
    if not isinstance(values.type, pa.BaseExtensionType):
        return values
    if isinstance(values.type, pa.UuidType):
        return pa.array([None if v is None else str(v) for v in values.to_pylist()], pa.string())
    if isinstance(values, pa.ChunkedArray):
        return pa.chunked_array([chunk.storage for chunk in values.chunks], values.type.storage_type)
    return values.storage
