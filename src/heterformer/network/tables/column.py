"""Columns to read: how their values become ids, texts, labels and times, and what is an error."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from math import inf, isfinite
from typing import Any, Literal, NamedTuple, Protocol

import polars as pl

from heterformer.errors import InputError
from heterformer.untrusted import short_list, short_repr

Kind = Literal["id", "ids", "labels", "text", "time", "value", "attribute", "weight"]

DTYPES: dict[Kind, pl.DataType] = {
    "id": pl.String(),
    "ids": pl.List(pl.String()),
    "labels": pl.List(pl.String()),
    "text": pl.String(),
    "time": pl.Float64(),
    "value": pl.String(),
    "attribute": pl.String(),
    "weight": pl.Float64(),
}
A_TIME = "a number or a date such as 2023-08-06"
A_WEIGHT = "a number of at least 0"
AN_ATTRIBUTE = "one number, text or true or false per node"
DAY = 24 * 60 * 60  # seconds
LISTED = 20  # columns, in a message
LARGEST_WHOLE = 2.0**53  # floats from here on leave out whole numbers
DATES = ("%Y-%m-%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%d-%b-%Y", "%Y-%m", "%Y/%m/%d")


@dataclass(frozen=True)
class Column:
    """A column to read. A dotted path reaches into records: ``authors.id`` is the id of each author."""

    path: str
    kind: Kind
    separator: str | None = None
    missing: tuple[str, ...] = ()
    """Spellings of "missing" in a column of times. Of other kinds they are values, which a build counts."""


@dataclass(frozen=True)
class Chunk:
    """Consecutive rows: one series per column, in the order of the columns."""

    columns: tuple[pl.Series, ...]
    first_row: int  # its number within the table, from 0
    done: float  # the share of the table read so far

    def __len__(self) -> int:
        return len(self.columns[0])


class Place(NamedTuple):
    """Where values come from, for error messages."""

    table: str
    column: str
    first_row: int  # of the values, from 0

    def error(self, row: int, problem: str) -> InputError:
        """``row`` counts within the values; users count the rows of the table from 1."""
        return InputError(f"{self.table}: row {self.first_row + row + 1}, column {self.column!r}: {problem}.")


class Table(Protocol):
    """Anything that can be read in chunks of some of its columns."""

    @property
    def where(self) -> str:
        """How messages name the table."""

    @property
    def size(self) -> int:
        """Bytes (or an estimate), for progress bars."""

    def chunks(self, columns: Sequence[Column]) -> Iterator[Chunk]:
        """All rows, in chunks; a missing column or a value of the wrong kind is an error."""


def missing_column(where: str, path: str, columns: Sequence[str], hint: str = "") -> InputError:
    """The error for a column that a table lacks."""
    guess = [] if hint else get_close_matches(path, columns, n=1)
    hint = f" (did you mean {short_repr(guess[0])}?)" if len(columns) > LISTED and guess else hint
    return InputError(f"{where}: no column {path!r}, the columns are {short_list(columns, LISTED)}{hint}.")


def converted(values: pl.Series, column: Column, where: str, first_row: int) -> pl.Series:
    """A typed series (from CSV, Parquet or a frame) as values of the column's kind."""
    place = Place(where, column.path, first_row)
    match column.kind:
        case "id":
            return _as_ids(values, place)
        case "ids":
            return _as_id_lists(values, column, place)
        case "text":
            if values.dtype == pl.Null:
                return values.cast(pl.String)
            if values.dtype not in (pl.String, pl.Categorical, pl.Enum):
                raise _wrong_kind(values, place, "text")
            return values.cast(pl.String)
        case "time":
            return _as_times(values, place, column.missing)
        case "labels":
            return _as_labels(values, column, place)
        case "weight":
            return _as_weights(values, place)
        case "attribute":
            if values.dtype.is_nested() or values.dtype == pl.Binary:
                raise _wrong_kind(values, place, AN_ATTRIBUTE)
            return values.cast(pl.String)
        case "value":
            if values.dtype == pl.Binary:
                raise _wrong_kind(values, place, "text, numbers or dates")
            if values.dtype.is_nested():
                return pl.Series([display_text(v) for v in values.to_list()], dtype=pl.String)
            if values.dtype == pl.Duration:
                return values.dt.to_string("iso")
            return values.cast(pl.String)


def display_text(value: Any) -> str | None:
    """A nested value as a person would read it: a list with commas, anything deeper as JSON."""
    if value is None:
        return None
    values = [v for v in value if v is not None] if isinstance(value, list) else [value]
    return ", ".join(
        v if isinstance(v, str) else json.dumps(v, default=str, ensure_ascii=False) for v in values
    )


def time_value(text: str) -> float | None:
    """A number, or a date as a decimal year; None if it is neither."""
    try:
        number = float(text)
        return number if isfinite(number) else None
    except ValueError:
        pass
    for form in DATES:
        try:
            day = datetime.strptime(text.strip()[:19], form)
        except ValueError:
            continue
        of_day = (day - datetime(day.year, day.month, day.day)).total_seconds() / DAY
        return day.year + (day.timetuple().tm_yday - 1 + of_day) / 366
    return None


def root_of(path: str, names: Sequence[str], where: str) -> str:
    """The column of the table in which a dotted path starts."""
    root = path if path in names else path.split(".")[0]
    if root not in names:
        raise missing_column(where, path, names)
    return root


def selected(
    frame: pl.DataFrame, columns: Sequence[Column], where: str, first_row: int
) -> tuple[pl.Series, ...]:
    """The columns of a typed frame, each looked up, checked and converted."""
    return tuple(converted(_looked_up(frame, c, where, first_row), c, where, first_row) for c in columns)


def _looked_up(frame: pl.DataFrame, column: Column, where: str, first_row: int) -> pl.Series:
    """Follow a dotted path into structs and lists of structs."""
    root = root_of(column.path, frame.columns, where)
    values = frame[root]
    for step in column.path[len(root) :].split(".")[1:]:
        element = values.dtype.inner if isinstance(values.dtype, pl.List) else values.dtype
        if not isinstance(element, pl.Struct):
            raise _wrong_kind(values, Place(where, column.path, first_row), f"records with a field {step!r}")
        if step not in (names := [f.name for f in element.fields]):
            raise missing_column(f"{where}: inside {column.path!r}", step, names)
        if isinstance(values.dtype, pl.List):
            values = values.list.eval(pl.element().struct.field(step))
        else:
            values = values.struct.field(step)
    return values


def _as_ids(values: pl.Series, place: Place) -> pl.Series:
    values = _whole_numbers(values)
    if not _holds_ids(values.dtype):
        raise _wrong_kind(values, place, "ids: text or whole numbers")
    return values.cast(pl.String)


def _as_id_lists(values: pl.Series, column: Column, place: Place) -> pl.Series:
    if isinstance(values.dtype, (pl.List, pl.Array)):
        values = _whole_numbers(values.cast(pl.List(values.dtype.inner)))
        if not _holds_ids(_element(values.dtype)):
            raise _wrong_kind(values, place, "lists of ids: text or whole numbers")
        return values.cast(pl.List(pl.String))
    values = _as_ids(values, place)
    if column.separator is not None:
        return values.str.split(column.separator).list.eval(pl.element().str.strip_chars())
    return pl.select(pl.concat_list(values)).to_series()


def _as_labels(values: pl.Series, column: Column, place: Place) -> pl.Series:
    """Class names; whole numbers and booleans are names, too."""
    dtype = values.dtype
    inner = _element(dtype)
    if inner == pl.Boolean or (inner.is_float() and _is_whole(values)):
        whole: Any = pl.String() if inner == pl.Boolean else pl.Int64()
        values = values.cast(pl.List(whole) if inner != dtype else whole, strict=False)
    elif not _holds_ids(inner):
        expected = "class names: text, whole numbers or true and false"
        raise _wrong_kind(values, place, expected)
    return _as_id_lists(values, column, place)


def _whole_numbers(values: pl.Series) -> pl.Series:
    """Floats as whole numbers, if all are: a missing value makes pandas write 1 as 1.0. NaN becomes null."""
    if not _element(values.dtype).is_float() or not _is_whole(values):
        return values
    whole = pl.List(pl.Int64()) if isinstance(values.dtype, pl.List) else pl.Int64()
    return values.cast(whole, strict=False)


def _element(dtype: pl.DataType) -> Any:
    return dtype.inner if isinstance(dtype, (pl.List, pl.Array)) else dtype


def _is_whole(values: pl.Series) -> bool:
    numbers = values.explode() if isinstance(values.dtype, (pl.List, pl.Array)) else values
    numbers = numbers.drop_nulls().drop_nans()
    return bool(((numbers == numbers.floor()) & (numbers.abs() < LARGEST_WHOLE)).all())


def _holds_ids(dtype: Any) -> bool:
    return dtype in (pl.String, pl.Categorical, pl.Enum, pl.Null) or dtype.is_integer()


def _as_times(values: pl.Series, place: Place, missing: Sequence[str] = ()) -> pl.Series:
    if values.dtype.is_numeric() or values.dtype == pl.Null:
        times = values.cast(pl.Float64).fill_nan(None)
        if times.is_infinite().any():
            row = int(times.is_infinite().fill_null(False).arg_max() or 0)
            raise place.error(row, f"found {times[row]}, expected {A_TIME}")
        return times
    if values.dtype in (pl.Date, pl.Datetime):
        moments = values.cast(pl.Datetime("us"))
        of_day = (moments - moments.dt.truncate("1d")).dt.total_microseconds() / (DAY * 10**6)
        return (moments.dt.year() + (moments.dt.ordinal_day() - 1 + of_day) / 366).cast(pl.Float64)
    if values.dtype != pl.String:
        raise _wrong_kind(values, place, "a number or a date")
    stripped = values.str.strip_chars()
    values = values.set(stripped.str.to_lowercase().is_in(["", "nan"]) | stripped.is_in(list(missing)), None)
    times = values.map_elements(time_value, return_dtype=pl.Float64)
    if (wrong := times.is_null() & values.is_not_null()).any():
        row = int(wrong.arg_max() or 0)
        raise place.error(row, f"found {short_repr(values[row])}, expected {A_TIME}")
    return times


def weight_value(text: str) -> float | None:
    """A weight, or None if it cannot be one: no number, negative or infinite."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 <= number < inf else None


def _as_weights(values: pl.Series, place: Place) -> pl.Series:
    """Numbers; an empty field is missing, which whoever reads them may refuse."""
    if values.dtype == pl.String:
        values = values.set(values.str.strip_chars() == "", None)
        numbers = values.str.strip_chars().cast(pl.Float64, strict=False)
    elif values.dtype.is_numeric() or values.dtype == pl.Null:
        numbers = values.cast(pl.Float64)
    else:
        raise _wrong_kind(values, place, A_WEIGHT)
    sound = (numbers >= 0) & numbers.is_finite()
    if (wrong := values.is_not_null() & ~sound.fill_null(False)).any():
        row = int(wrong.arg_max() or 0)
        raise place.error(row, f"found {short_repr(values[row])}, expected {A_WEIGHT}")
    return numbers


def _wrong_kind(values: pl.Series, place: Place, expected: str) -> InputError:
    present = values.list.len() > 0 if isinstance(values.dtype, pl.List) else values.is_not_null()
    if values.dtype.is_float():  # some are whole numbers, which would do
        present = present & ((values != values.floor()) | (values.abs() >= LARGEST_WHOLE))
    row = int(present.arg_max() or 0)
    value = values.slice(row, 1).to_list()
    problem = f"found {short_repr(value[0])} (type {values.dtype})" if value else f"type {values.dtype}"
    return place.error(row, f"{problem}, expected {expected}")
