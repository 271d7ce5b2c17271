"""The user's tables: CSV, TSV, JSON lines and Parquet files, plain or gzipped, and frames in memory.

Each is read in chunks of the wanted columns only, so that no table has to fit in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from heterformer.errors import InputError
from heterformer.network.tables.column import Chunk, Column, Table
from heterformer.network.tables.delimited import DelimitedTable
from heterformer.network.tables.frame import FrameTable
from heterformer.network.tables.json_lines import JsonLinesTable
from heterformer.network.tables.parquet import ParquetTable

__all__ = ["Chunk", "Column", "FrameTable", "Table", "open_table"]

FORMATS: dict[str, Callable[[Path], Table]] = {
    ".csv": lambda path: DelimitedTable(path, ","),
    ".tsv": lambda path: DelimitedTable(path, "\t"),
    ".jsonl": JsonLinesTable,
    ".ndjson": JsonLinesTable,
    ".json": JsonLinesTable,
    ".parquet": ParquetTable,
}


def open_table(path: Path) -> Table:
    """The reader that a file's ending asks for (``.gz`` may follow it)."""
    if path.is_dir():
        raise InputError(f"{path}: is a folder, expected a file.")
    if not path.is_file():
        raise InputError(f"{path}: no such file.")
    ending = path.with_suffix("").suffix if path.suffix.lower() == ".gz" else path.suffix
    if ending.lower() not in FORMATS:
        expected = ", ".join(FORMATS)
        raise InputError(
            f"{path}: cannot tell the format of {ending!r} files, expected {expected} (or with .gz)."
        )
    return FORMATS[ending.lower()](path)
