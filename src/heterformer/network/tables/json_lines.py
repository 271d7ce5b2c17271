"""JSON: one record per line or an array of records, which may hold nested lists and records."""

from __future__ import annotations

import codecs
import gzip
import json
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import polars as pl

from heterformer.errors import InputError
from heterformer.network.tables.column import (
    A_TIME,
    A_WEIGHT,
    AN_ATTRIBUTE,
    DTYPES,
    LARGEST_WHOLE,
    Chunk,
    Column,
    display_text,
    missing_column,
    time_value,
    weight_value,
)
from heterformer.network.tables.json_array import array_records
from heterformer.network.tables.packed import unpacked


class JsonLinesTable:
    """A ``.jsonl`` file, or a ``.json`` file that may be an array.

    A key that a record lacks is a missing value; one that all lack is an error.

    ``chunk_rows`` records are in memory at a time.
    """

    def __init__(self, path: Path, chunk_rows: int = 50_000, longest_line: int = 1 << 28) -> None:
        self.longest_line = longest_line
        self.chunk_rows = chunk_rows
        self.path = path
        self.where = str(path)
        self.size = path.stat().st_size
        self.unit = "line"  # what the numbers in messages count

    def chunks(self, columns: Sequence[Column]) -> Iterator[Chunk]:
        readers = [_Reader(c, self) for c in columns]
        values: list[list[Any]] = [[] for _ in columns]
        first_row, keys = 0, dict[str, None]()
        with self._opened() as raw:
            for number, record in self._records(raw):
                keys.update(dict.fromkeys(record))
                for reader, column_values in zip(readers, values, strict=True):
                    column_values.append(reader.value(record, number))
                if len(values[0]) == self.chunk_rows:
                    yield _chunk(values, columns, first_row, raw.tell() / max(self.size, 1))
                    first_row += self.chunk_rows
                    values = [[] for _ in columns]
        for reader in readers:
            if keys and not reader.key_seen:
                raise missing_column(self.where, reader.column.path, list(keys))
        yield _chunk(values, columns, first_row, 1.0)

    def _opened(self) -> Any:
        try:
            return self.path.open("rb")
        except OSError as error:
            raise InputError(f"{self.where}: cannot be read ({error.strerror or error}).") from None

    def _records(self, raw: BinaryIO) -> Iterator[tuple[int, dict[str, Any]]]:
        try:
            stream = unpacked(raw, self.path)
            if self._is_array(stream):
                self.unit = "record"
                for number, record in array_records(stream, self.where):
                    yield number, self._record(record, f"{self.where}: record {number}")
                return
            for number, line in enumerate(iter(lambda: stream.readline(self.longest_line), b""), start=1):
                if len(line) == self.longest_line:
                    problem = (
                        f"more than {self.longest_line:,} bytes without an end, expected one JSON object"
                    )
                    raise InputError(f"{self.where}: line {number}: found {problem} per line.")
                if not line.isspace():
                    yield number, self._record(line, f"{self.where}: line {number}")
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InputError(f"{self.where}: damaged gzip file ({error}); download it again.") from None
        except OSError as error:
            raise InputError(f"{self.where}: cannot be read ({error.strerror or error}).") from None

    def _is_array(self, stream: BinaryIO) -> bool:
        """Whether a ``.json`` file, which is not by its name one of lines, begins with a bracket."""
        if ".json" not in (suffix.lower() for suffix in self.path.suffixes[-2:]):
            return False
        head = stream.read(1 << 16).removeprefix(codecs.BOM_UTF8).lstrip()
        stream.seek(0)
        return head.startswith(b"[")

    def _record(self, line: bytes, place: str) -> dict[str, Any]:
        try:
            record = json.loads(line.decode("utf-8-sig"))
            if b"\\ud" in line.lower():  # perhaps half a surrogate pair, which is not text
                json.dumps(record, ensure_ascii=False).encode()
        except UnicodeDecodeError as error:
            raise InputError(f"{place}: byte {error.start + 1} is not UTF-8.") from None
        except json.JSONDecodeError as error:
            problem = f"not valid JSON at character {error.pos + 1} ({error.msg})"
            if error.pos >= len(error.doc.rstrip()):  # the value goes on in the next line
                problem += "; expected one whole object per line, or an array of objects in a .json file"
            raise InputError(f"{place}: {problem}.") from None
        except (ValueError, RecursionError) as error:  # surrogates; too many digits or brackets
            raise InputError(f"{place}: not valid JSON ({error}).") from None
        if not isinstance(record, dict):
            array = "; let the name of an array of objects end in .json" * isinstance(record, list)
            problem = f"found {type(record).__name__}, expected one JSON object per line{array}"
            raise InputError(f"{place}: {problem}.")
        return record


class _Reader:
    """Takes the value of one column out of a record and checks its kind."""

    def __init__(self, column: Column, table: JsonLinesTable) -> None:
        self.column = column
        self.table = table
        self.key_seen = False
        self.steps = column.path.split(".")

    def value(self, record: dict[str, Any], line: int) -> Any:
        value = record.get(self.column.path)
        if self.column.path in record:
            self.key_seen = True
        elif len(self.steps) > 1:
            self.key_seen |= self.steps[0] in record and not record[self.steps[0]]  # null or empty
            value = self._looked_up(record, self.steps)
        if value is None:
            return None
        match self.column.kind:
            case "id":
                return self._id(value, line)
            case "ids":
                return self._ids(value, line)
            case "labels":
                value = [_label(v) for v in value] if isinstance(value, list) else _label(value)
                return self._ids(value, line)
            case "text":
                if not isinstance(value, str):
                    raise self._error(line, value, "text")
                return value
            case "time":
                return self._time(value, line)
            case "weight":
                return self._weight(value, line)
            case "attribute":
                if isinstance(value, (list, dict)):
                    raise self._error(line, value, AN_ATTRIBUTE)
                return display_text(value)
            case _:
                return display_text(value)

    def _looked_up(self, value: Any, steps: Sequence[str]) -> Any:
        if not steps:
            self.key_seen = True
            return value
        if isinstance(value, list):
            return [self._looked_up(v, steps) for v in value]
        return (
            self._looked_up(value[steps[0]], steps[1:])
            if isinstance(value, dict) and steps[0] in value
            else None
        )

    def _id(self, value: Any, line: int) -> str | None:
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if isinstance(value, float) and value.is_integer() and abs(value) < LARGEST_WHOLE:
            return str(int(value))
        raise self._error(line, value, "an id: text or a whole number")

    def _ids(self, value: Any, line: int) -> list[str | None]:
        if isinstance(value, str) and self.column.separator is not None:
            return [part.strip() for part in value.split(self.column.separator)]
        return [self._id(v, line) for v in value] if isinstance(value, list) else [self._id(value, line)]

    def _time(self, value: Any, line: int) -> float | None:
        if isinstance(value, str) and value.strip() in ("", *self.column.missing):
            return None
        time = None if isinstance(value, bool) else time_value(str(value))
        if time is None:
            raise self._error(line, value, A_TIME)
        return time

    def _weight(self, value: Any, line: int) -> float | None:
        if isinstance(value, str) and not value.strip():
            return None
        weight = None if isinstance(value, bool) else weight_value(str(value))
        if weight is None:
            raise self._error(line, value, A_WEIGHT)
        return weight

    def _error(self, line: int, value: Any, expected: str) -> InputError:
        text = json.dumps(value, ensure_ascii=False)
        excerpt = text if len(text) <= 60 else text[:57] + "..."
        place = f"{self.table.where}: {self.table.unit} {line}, column {self.column.path!r}"
        return InputError(f"{place}: found {excerpt}, expected {expected}.")


def _label(value: Any) -> Any:
    """Booleans and whole numbers are class names, too."""
    if isinstance(value, bool):
        return str(value).lower()
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _chunk(values: list[list[Any]], columns: Sequence[Column], first_row: int, done: float) -> Chunk:
    series = (pl.Series(c.path, v, dtype=DTYPES[c.kind]) for c, v in zip(columns, values, strict=True))
    return Chunk(tuple(series), first_row, done)
