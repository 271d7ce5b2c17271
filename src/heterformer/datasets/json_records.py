"""JSON records of huge files as typed frames, a few thousand at a time.

Records may be one per line, with or without an array's brackets and commas around them, or an array of any
layout. Arrow parses the fields of the schema and skips the others. A chunk that Arrow refuses is read again
record by record, which converts what can be converted and otherwise names the line at fault.
"""

from __future__ import annotations

import codecs
import io
import json
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, cast

import polars as pl
import pyarrow as pa
import pyarrow.json

from heterformer.datasets.raw_file import opened
from heterformer.errors import InputError
from heterformer.network.tables.json_array import CUT_SHORT, Record, Sizes, array_records, too_long


def record_frames(path: Path, schema: pa.Schema, sizes: Sizes | None = None) -> Iterator[pl.DataFrame]:
    """All records of a file in frames of some thousand rows, with the columns of ``schema``.

    A field that a record lacks is null, and so is an empty string in place of a list, record or number.
    Numbers in place of text, and text in place of numbers, are converted.
    """
    sizes = sizes or Sizes()
    with opened(path) as (stream, tell):
        unit, split = _layout(stream, sizes)
        records = split(stream, str(path), sizes)
        while chunk := list(islice(records, sizes.frame_rows)):
            yield _parsed(chunk, schema, f"{path}: {unit}")
            tell()


Splitter = Callable[[BinaryIO, str, Sizes], Iterator[Record]]


def _layout(stream: BinaryIO, sizes: Sizes) -> tuple[str, Splitter]:
    """How records are separated, detected from the first one; and what their numbers count."""
    head = stream.read(sizes.block).decode("utf-8-sig", errors="ignore")
    stream.seek(0)
    begin = head.find("{")
    try:
        _, end = json.JSONDecoder().raw_decode(head, max(begin, 0))
    except (ValueError, RecursionError):
        end = begin
    rest = head[end:].lstrip(" \t\r,]")
    alone = "\n" not in head[begin:end] and (not rest or rest[0] == "\n" or end == begin)
    return ("line", _lines) if alone and "\n" in head else ("record", array_records)


def _lines(stream: BinaryIO, where: str, sizes: Sizes) -> Iterator[Record]:
    """One record per line. In an array its bracket or comma may begin or end the line."""
    begun = array = closed = False
    number = 0
    while line := stream.readline(sizes.record):
        number += 1
        if len(line) == sizes.record:
            raise too_long(f"{where}: line {number}", sizes)
        if number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
        text = line.strip()
        if not text:
            continue
        if closed:
            raise InputError(f"{where}: line {number}: found more after the end of the array.")
        if not begun and text.startswith(b"["):
            array, text = True, text[1:].lstrip()
        begun = True
        if array:
            closed = text.endswith(b"]")
            text = text.removeprefix(b",").removesuffix(b"]").strip().removesuffix(b",").strip()
        if text:
            if not line.endswith(b"\n") and not text.endswith(b"}"):
                raise InputError(f"{where}: line {number}: the last record has no end: {CUT_SHORT}.")
            yield number, text
    if array and not closed:
        raise InputError(f"{where}: line {number}: the array has no closing bracket: {CUT_SHORT}.")


def _parsed(chunk: Sequence[Record], schema: pa.Schema, where: str) -> pl.DataFrame:
    data = b"\n".join(record for _, record in chunk)
    try:
        table = pyarrow.json.read_json(
            io.BytesIO(data),
            read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=len(data) + 1),
            parse_options=pyarrow.json.ParseOptions(
                explicit_schema=schema, unexpected_field_behavior="ignore"
            ),
        )
        table.validate(full=True)  # Arrow's parser takes any bytes for text
    except (pa.ArrowInvalid, UnicodeDecodeError):
        table = None
    if table is None or table.num_rows != len(chunk):  # two records in one line are two rows for Arrow
        table = pa.Table.from_pylist(
            [_conformed(record, schema, f"{where} {n}") for n, record in chunk], schema
        )
    return cast(pl.DataFrame, pl.from_arrow(table.select(schema.names)))


def _conformed(record: bytes, schema: pa.Schema, place: str) -> dict[str, Any]:
    try:
        values = json.loads(record)
    except UnicodeDecodeError as error:
        raise InputError(f"{place}: byte {error.start + 1} is not UTF-8.") from None
    except json.JSONDecodeError as error:
        problem = f"not valid JSON at character {error.pos + 1} ({error.msg})"
        raise InputError(f"{place}: {problem}.") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place}: not valid JSON ({error}).") from None
    if not isinstance(values, dict):
        raise InputError(f"{place}: found {type(values).__name__}, expected a JSON object.")
    return {
        field.name: _value(values.get(field.name), field.type, f"{place}, {field.name}") for field in schema
    }


def _value(value: Any, kind: pa.DataType, place: str) -> Any:
    """The value as the wanted type, where its meaning is unambiguous."""
    if value is None or (value == "" and not pa.types.is_string(kind)):
        return None
    if pa.types.is_list(kind) and isinstance(value, list):
        return [_value(element, kind.value_type, place) for element in value]
    if pa.types.is_struct(kind) and isinstance(value, dict):
        return {
            field.name: _value(value.get(field.name), field.type, f"{place}.{field.name}") for field in kind
        }
    if pa.types.is_string(kind) and isinstance(value, (str, int)) and not isinstance(value, bool):
        # Half a surrogate pair is legal in JSON and no text.
        return str(value).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if pa.types.is_integer(kind) and (number := _integer(value)) is not None:
        return number
    text = json.dumps(value, ensure_ascii=False)
    excerpt = text if len(text) <= 60 else text[:57] + "..."
    raise InputError(f"{place}: found {excerpt}, expected {_named(kind)}.")


def _integer(value: Any) -> int | None:
    try:
        number = None if isinstance(value, bool) else int(value)
    except (ValueError, TypeError, OverflowError):
        return None
    whole = number is not None and abs(number) < 2**63 and (isinstance(value, str) or number == value)
    return number if whole else None


def _named(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return "a list"
    if pa.types.is_struct(kind):
        return "a JSON object"
    return "text" if pa.types.is_string(kind) else "a whole number"
