"""Gzipped files, as streams that end with an error before they fill a disk or the memory."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import Any, BinaryIO, cast

from heterformer.errors import InputError

ALLOWANCE = 1 << 30  # bytes that any file may unpack to
RATIO = 200  # times its own size that a larger one may unpack to; tables have 3 to 20, zeros 1,000


def is_packed(path: Path) -> bool:
    """Whether a file is gzipped, by its name."""
    return path.suffix.lower() == ".gz"


def unpacked(raw: BinaryIO, path: Path, allowance: int = ALLOWANCE) -> BinaryIO:
    """The contents of a file, unpacked if it is gzipped."""
    if not is_packed(path):
        return raw
    most = allowance + RATIO * path.stat().st_size
    return cast(BinaryIO, io.BufferedReader(_GzipStream(raw, path, most), 1 << 16))


class _GzipStream(io.RawIOBase):
    """A gzip stream with a maximum unpacked size."""

    def __init__(self, raw: BinaryIO, path: Path, most: int) -> None:
        self._file = gzip.GzipFile(fileobj=raw)
        self._path, self._most = path, most

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        if self._file.tell() > self._most:
            times = self._most / max(self._path.stat().st_size, 1)
            problem = f"unpacks to more than {self._most / 1e9:,.1f} GB, {times:,.0f} times its size"
            raise InputError(f"{self._path}: {problem}; if that is right, unpack it and name the plain file.")
        return len(data)
