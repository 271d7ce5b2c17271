"""JSON lines: one record per line, with nested lists and records as they come."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from heterformer.errors import InputError
from heterformer.network.tables.column import DTYPES, Chunk, Column, missing_column, shown, time_value

ROWS = 50_000  # records held at a time


class JsonLinesTable:
    """A ``.jsonl`` file. A key that a record lacks is a missing value; one that all lack is an error."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.where = str(path)
        self.size = path.stat().st_size

    def chunks(self, columns: Sequence[Column]) -> Iterator[Chunk]:
        readers = [_Reader(c, self.where) for c in columns]
        values: list[list[Any]] = [[] for _ in columns]
        first, keys = 0, dict[str, None]()
        with self._opened() as raw:
            for number, record in self._records(raw):
                keys.update(dict.fromkeys(record))
                for reader, into in zip(readers, values, strict=True):
                    into.append(reader.value(record, number))
                if len(values[0]) == ROWS:
                    yield _chunk(values, columns, first, raw.tell() / max(self.size, 1))
                    first += ROWS
                    values = [[] for _ in columns]
        for reader in readers:
            if keys and not reader.met:
                raise missing_column(self.where, reader.column.path, list(keys))
        yield _chunk(values, columns, first, 1.0)

    def _opened(self) -> Any:
        try:
            return self.path.open("rb")
        except OSError as error:
            raise InputError(f"{self.where}: cannot be read ({error.strerror or error}).") from None

    def _records(self, raw: Any) -> Iterator[tuple[int, dict[str, Any]]]:
        try:
            lines = gzip.GzipFile(fileobj=raw) if self.path.suffix.lower() == ".gz" else raw
            for number, line in enumerate(lines, start=1):
                if not line.isspace():
                    yield number, self._record(line, f"{self.where}: line {number}")
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InputError(f"{self.where}: the gzip file is broken ({error}); fetch it again.") from None
        except OSError as error:
            raise InputError(f"{self.where}: cannot be read ({error.strerror or error}).") from None

    def _record(self, line: bytes, place: str) -> dict[str, Any]:
        try:
            record = json.loads(line.decode("utf-8-sig"))
            if b"\\ud" in line.lower():  # perhaps half a surrogate pair, which is not text
                json.dumps(record, ensure_ascii=False).encode()
        except UnicodeDecodeError as error:
            raise InputError(f"{place}: byte {error.start + 1} is not UTF-8.") from None
        except json.JSONDecodeError as error:
            found = f"not valid JSON at character {error.pos + 1} ({error.msg})"
            raise InputError(f"{place}: {found}.") from None
        except (ValueError, RecursionError) as error:  # surrogates; digits or brackets beyond all bounds
            raise InputError(f"{place}: not valid JSON ({error}).") from None
        if not isinstance(record, dict):
            found = f"found {type(record).__name__}"
            raise InputError(f"{place}: {found}, expected one JSON object per line.")
        return record


class _Reader:
    """Takes one wanted value out of a record and checks its kind."""

    def __init__(self, column: Column, where: str) -> None:
        self.column = column
        self.where = where
        self.met = False
        self.steps = column.path.split(".")

    def value(self, record: dict[str, Any], line: int) -> Any:
        found = record.get(self.column.path)
        if self.column.path in record:
            self.met = True
        elif len(self.steps) > 1:
            self.met |= self.steps[0] in record and not record[self.steps[0]]  # nothing to look into
            found = self._reached(record, self.steps)
        if found is None:
            return None
        match self.column.kind:
            case "id":
                return self._id(found, line)
            case "ids":
                return self._ids(found, line)
            case "labels":
                found = [_label(v) for v in found] if isinstance(found, list) else _label(found)
                return self._ids(found, line)
            case "text":
                if not isinstance(found, str):
                    raise self._error(line, found, "text")
                return found
            case "time":
                return self._time(found, line)
            case _:
                return shown(found)

    def _reached(self, value: Any, steps: Sequence[str]) -> Any:
        if not steps:
            self.met = True
            return value
        if isinstance(value, list):
            return [self._reached(v, steps) for v in value]
        return (
            self._reached(value[steps[0]], steps[1:])
            if isinstance(value, dict) and steps[0] in value
            else None
        )

    def _id(self, found: Any, line: int) -> str | None:
        if found is None or isinstance(found, str):
            return found
        if isinstance(found, int) and not isinstance(found, bool):
            return str(found)
        raise self._error(line, found, "an id: text or a whole number")

    def _ids(self, found: Any, line: int) -> list[str | None]:
        if isinstance(found, str) and self.column.separator is not None:
            return [part.strip() for part in found.split(self.column.separator)]
        return [self._id(v, line) for v in found] if isinstance(found, list) else [self._id(found, line)]

    def _time(self, found: Any, line: int) -> float | None:
        if isinstance(found, str) and not found.strip():
            return None
        time = None if isinstance(found, bool) else time_value(str(found))
        if time is None:
            raise self._error(line, found, "a number or a date such as 2023-08-06")
        return time

    def _error(self, line: int, found: Any, expected: str) -> InputError:
        text = json.dumps(found, ensure_ascii=False)
        shown = text if len(text) <= 60 else text[:57] + "..."
        place = f"{self.where}: line {line}, column {self.column.path!r}"
        return InputError(f"{place}: found {shown}, expected {expected}.")


def _label(value: Any) -> Any:
    """Truth values and whole numbers are names of classes."""
    if isinstance(value, bool):
        return str(value).lower()
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _chunk(values: list[list[Any]], columns: Sequence[Column], first: int, done: float) -> Chunk:
    series = (pl.Series(c.path, v, dtype=DTYPES[c.kind]) for c, v in zip(columns, values, strict=True))
    return Chunk(tuple(series), first, done)
