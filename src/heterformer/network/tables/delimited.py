"""CSV and TSV tables."""

from __future__ import annotations

import csv
import io
import json
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, cast

import polars as pl
import pyarrow as pa
import pyarrow.csv

from heterformer.errors import InputError
from heterformer.network.tables.column import LISTED, Chunk, Column, converted, missing_column
from heterformer.network.tables.packed import is_packed, unpacked

DELIMITERS = (";", "|", "\t", ",")
# Files of other formats under the name of a table: their first bytes, what they are, and what to do.
OTHER_FORMATS = (
    (b"\x1f\x8b", "a gzip file", "let its name end in .gz"),
    (b"PAR1", "a Parquet file", "let its name end in .parquet"),
    (b"PK\x03\x04", "a ZIP archive or an Excel file", "unpack it, or save the sheet as CSV"),
    (b"\xd0\xcf\x11\xe0", "an Excel file", "save the sheet as CSV"),
)


class DelimitedTable:
    """A CSV or TSV file with a header line. Every value is text; an empty field is a missing value.

    ``block_size`` bytes are parsed at a time.
    """

    def __init__(self, path: Path, delimiter: str, block_size: int = 16 << 20) -> None:
        self.block_size = block_size
        self.path = path
        self.where = str(path)
        self.delimiter = delimiter
        self.size = path.stat().st_size

    def chunks(self, columns: Sequence[Column]) -> Iterator[Chunk]:
        try:
            yield from self._chunks(columns)
        except (pa.ArrowInvalid, OSError, EOFError, zlib.error) as error:
            raise self._diagnosed(error) from None

    def _chunks(self, columns: Sequence[Column]) -> Iterator[Chunk]:
        with self.path.open("rb") as raw, unpacked(raw, self.path) as stream:
            names = self._header(columns)
            quote_counter = _QuoteCounter(stream)
            reader = pyarrow.csv.open_csv(
                quote_counter,
                read_options=pyarrow.csv.ReadOptions(block_size=self.block_size),
                parse_options=pyarrow.csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
                convert_options=pyarrow.csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.large_string()),
                    include_columns=list(dict.fromkeys(c.path for c in columns)),
                    null_values=[""],
                    strings_can_be_null=True,
                ),
            )
            first_row = 0
            for batch in reader:
                frame = cast(pl.DataFrame, pl.from_arrow(batch))
                series = tuple(converted(frame[c.path], c, self.where, first_row) for c in columns)
                yield Chunk(series, first_row, raw.tell() / max(self.size, 1))
                first_row += len(frame)
        if quote_counter.quotes:  # the fast parser reads whole rows as one value where quotes do not match
            self._check_quotes()

    def _check_quotes(self) -> None:
        with self.path.open("rb") as raw, unpacked(raw, self.path) as stream:
            csv.field_size_limit(self.block_size)
            reader = csv.reader(_decoded_lines(stream, self.where), delimiter=self.delimiter, strict=True)
            row_start = 1
            try:
                for _ in reader:
                    row_start = reader.line_num + 1
            except csv.Error as error:
                problem = f"unclosed or undoubled quote in the row that starts here ({error})"
                raise InputError(f"{self.where}: line {row_start}: {problem}.") from None

    def _header(self, columns: Sequence[Column]) -> list[str]:
        with self.path.open("rb") as raw, unpacked(raw, self.path) as stream:
            head_bytes = stream.read(1 << 20)
        if head_bytes[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise InputError(f"{self.where}: line 1: found UTF-16, expected UTF-8; convert the file.")
        for beginning, found, remedy in OTHER_FORMATS:
            if head_bytes.startswith(beginning):
                raise InputError(f"{self.where}: found {found}, expected text; {remedy}.")
        head = head_bytes.decode("utf-8-sig", errors="replace")
        names = next(csv.reader(io.StringIO(head, newline=None), delimiter=self.delimiter), [])
        if not names:
            raise InputError(f"{self.where}: the file is empty, expected a header line with column names.")
        for column in columns:
            if names.count(column.path) > 1:
                raise InputError(f"{self.where}: line 1: duplicate column {column.path!r}.")
            if column.path not in names:
                raise missing_column(self.where, column.path, names, self._delimiter_hint(names))
        return names

    def _delimiter_hint(self, names: Sequence[str]) -> str:
        """What to do if the header looks as if something else separated its columns."""
        others = [d for d in DELIMITERS if d != self.delimiter and d in names[0]] if len(names) == 1 else []
        if not others:
            return ""
        return f"; they seem to be separated by {others[0]!r}: add delimiter: {json.dumps(others[0])}"

    def _diagnosed(self, error: Exception) -> InputError:
        """Read again, slowly, to find the line at fault, which the fast parser does not name."""
        end = 0  # the last line of the last row that is sound
        try:
            with self.path.open("rb") as raw, unpacked(raw, self.path) as stream:
                # A long text is not an error, but one that does not end within a block is a stray quote.
                csv.field_size_limit(self.block_size)
                lines = _decoded_lines(stream, self.where)
                reader = csv.reader(lines, delimiter=self.delimiter)
                names, end = next(reader), reader.line_num
                listed = f" ({', '.join(names)})" if len(names) <= LISTED else ""
                for row in reader:
                    start, end = end + 1, reader.line_num
                    if row and len(row) != len(names):
                        problem = f"found {len(row)} fields, expected {len(names):,}{listed}"
                        if end > start:
                            lines_read = f"{end - start + 1:,} lines"
                            problem += f" in a row of {lines_read}, perhaps after a quote that is not closed"
                        return InputError(f"{self.where}: line {start}: {problem}.")
        except InputError as undecodable:
            return undecodable
        except (OSError, EOFError, zlib.error) as broken:
            if is_packed(self.path):
                return InputError(f"{self.where}: damaged gzip file ({broken}); download it again.")
            return InputError(f"{self.where}: cannot be read ({broken}).")
        except csv.Error as broken:
            problem = f"a quote in the row that starts here is not closed ({broken})"
            return InputError(f"{self.where}: line {end + 1}: {problem}.")
        return InputError(f"{self.where}: cannot be parsed ({error}).")


class _QuoteCounter(io.RawIOBase):
    """Passes bytes on and counts the quotes among them."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.quotes = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        self.quotes += data.count(b'"')
        return data


def _decoded_lines(stream: BinaryIO, where: str) -> Iterator[str]:
    for number, line in enumerate(stream, start=1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            problem = f"byte {error.start + 1} ({line[error.start]:#04x}) is not UTF-8"
            raise InputError(f"{where}: line {number}: {problem}; convert the file.") from None
