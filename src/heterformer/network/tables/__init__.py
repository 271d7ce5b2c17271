"""The user's tables: CSV, TSV, JSON and Parquet files, plain or gzipped, and frames in memory.

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

DELIMITERS = {".csv": ",", ".tsv": "\t"}
FORMATS: dict[str, Callable[[Path], Table]] = {
    ".csv": lambda path: DelimitedTable(path, DELIMITERS[".csv"]),
    ".tsv": lambda path: DelimitedTable(path, DELIMITERS[".tsv"]),
    ".jsonl": JsonLinesTable,
    ".ndjson": JsonLinesTable,
    ".json": JsonLinesTable,
    ".parquet": ParquetTable,
}


def open_table(path: Path, delimiter: str | None = None) -> Table:
    """The reader for a file, chosen by its extension (``.gz`` may follow it).

    ``delimiter`` is what separates the columns of a CSV file, if not a comma.
    """
    if path.is_dir():
        raise InputError(f"{path}: is a folder, expected a file.")
    if not path.is_file():
        raise InputError(f"{path}: no such file.")
    extension = path.with_suffix("").suffix if path.suffix.lower() == ".gz" else path.suffix
    if extension.lower() not in FORMATS:
        expected = f"expected one of {', '.join(FORMATS)}, each also with .gz"
        raise InputError(f"{path}: unknown file extension {extension!r}, {expected}.")
    if delimiter is not None:
        if extension.lower() not in DELIMITERS:
            expected = f"expected a {' or '.join(DELIMITERS)} file"
            raise InputError(f"{path}: has a delimiter in the specification, {expected}.")
        return DelimitedTable(path, delimiter)
    return FORMATS[extension.lower()](path)
