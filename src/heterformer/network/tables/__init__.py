"""The user's tables: CSV, TSV, JSON lines and Parquet files, plain or gzipped, and frames in memory.

Each is read in chunks, and only the columns asked for, so that no table has to fit in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from heterformer.errors import InputError
from heterformer.network.tables.column import Chunk, Column, Place, Table
from heterformer.network.tables.delimited import DelimitedTable
from heterformer.network.tables.frame import FrameTable
from heterformer.network.tables.json_lines import JsonLinesTable
from heterformer.network.tables.parquet import ParquetTable

__all__ = ["Chunk", "Column", "FrameTable", "Place", "Table", "open_table"]

FORMATS: dict[str, Callable[[Path], Table]] = {
    ".csv": lambda path: DelimitedTable(path, ","),
    ".tsv": lambda path: DelimitedTable(path, "\t"),
    ".jsonl": JsonLinesTable,
    ".ndjson": JsonLinesTable,
    ".json": JsonLinesTable,
    ".parquet": ParquetTable,
}


def open_table(path: Path) -> Table:
    """The reader for a file, chosen by its extension (``.gz`` may follow it)."""
    if path.is_dir():
        raise InputError(f"{path}: is a folder, expected a file.")
    if not path.is_file():
        raise InputError(f"{path}: no such file.")
    extension = path.with_suffix("").suffix if path.suffix.lower() == ".gz" else path.suffix
    if extension.lower() not in FORMATS:
        expected = f"expected one of {', '.join(FORMATS)}, each also with .gz"
        raise InputError(f"{path}: unknown file extension {extension!r}, {expected}.")
    return FORMATS[extension.lower()](path)
