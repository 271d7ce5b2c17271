"""Parquet tables."""

from __future__ import annotations

import gzip
import shutil
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from heterformer.errors import InputError
from heterformer.network.tables.arrow import as_frame
from heterformer.network.tables.column import Chunk, Column, root_of, selected
from heterformer.network.tables.packed import is_packed, unpacked


class ParquetTable:
    """A Parquet file; a dotted path names a nested column. ``chunk_rows`` rows are in memory at a time."""

    def __init__(self, path: Path, chunk_rows: int = 1 << 18) -> None:
        self.chunk_rows = chunk_rows
        self.path = path
        self.where = str(path)
        self.size = path.stat().st_size

    def chunks(self, columns: Sequence[Column]) -> Iterator[Chunk]:
        try:
            with self._opened() as file:
                yield from self._chunks(file, columns)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InputError(f"{self.where}: damaged gzip file ({error}); download it again.") from None
        except (pa.ArrowInvalid, OSError) as error:
            reason = " ".join(str(error).split())
            raise InputError(f"{self.where}: not a readable Parquet file ({reason}).") from None

    def _chunks(self, file: Any, columns: Sequence[Column]) -> Iterator[Chunk]:
        names = file.schema_arrow.names
        roots = list(dict.fromkeys(root_of(c.path, names, self.where) for c in columns))
        for root in roots:
            if names.count(root) > 1:
                raise InputError(f"{self.where}: duplicate column {root!r}.")
        first_row, total = 0, max(file.metadata.num_rows, 1)
        for batch in file.iter_batches(self.chunk_rows, columns=roots):
            frame = as_frame(batch, self.where)
            done = (first_row + len(frame)) / total
            yield Chunk(selected(frame, columns, self.where, first_row), first_row, done)
            first_row += len(frame)

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        if not is_packed(self.path):
            with pyarrow.parquet.ParquetFile(self.path) as file:
                yield file
            return
        # Parquet is read from its end, which a gzip stream does not allow: unpack it before.
        with tempfile.TemporaryFile() as plain, self.path.open("rb") as raw:
            shutil.copyfileobj(unpacked(raw, self.path), plain)
            plain.seek(0)
            with pyarrow.parquet.ParquetFile(plain) as file:
                yield file
