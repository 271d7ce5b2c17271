"""Published files: where they are expected, and how they are read as a stream."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from heterformer.errors import InputError
from heterformer.progress import progress_bar

MEGABYTE = 1e6
BUFFER = 1 << 20  # bytes read from the disk at a time
NOT_PLAIN = {
    b"7z\xbc\xaf": "a 7z archive, unpack it first",
    b"PK\x03\x04": "a zip archive, unpack it first",
    b"\xfd7zXZ": "an xz file, unpack it first",
    b"BZh": "a bzip2 file, unpack it first",
    b"\x1f\x8b": "a gzip file, expected a name that ends in .gz",
    b"\xff\xfe": "UTF-16, expected UTF-8",
    b"\xfe\xff": "UTF-16, expected UTF-8",
}


@dataclass(frozen=True)
class RawFile:
    """A published file: its name and where to download it."""

    name: str
    published: str

    def within(self, folder: Path) -> Path | None:
        """Its path in ``folder``, gzipped or not, if it exists."""
        plain = self.name.removesuffix(".gz")
        return next((p for n in (self.name, plain, f"{plain}.gz") if (p := folder / n).is_file()), None)


def found_in(folder: Path, files: Sequence[RawFile]) -> list[Path]:
    """The paths of all files; missing ones are an error that says where to download them."""
    paths = [file.within(folder) for file in files]
    missing = [file for file, path in zip(files, paths, strict=True) if path is None]
    if missing:
        names = " and ".join(file.name for file in missing)
        places = " and ".join(dict.fromkeys(file.published for file in missing))
        if not folder.is_dir():
            what = "is a file" if folder.exists() else "no such folder"
            raise InputError(f"{folder}: {what}, expected a folder with {names}; download from {places}.")
        raise InputError(f"{folder}: no {names}; download from {places} into {folder}.")
    return [path for path in paths if path is not None]


Tell = Callable[[], None]  # moves the progress bar to where the file is being read


def _check_plain(path: Path, head: bytes) -> None:
    """Report a packed file or another encoding as such, not as invalid text."""
    for magic, what in NOT_PLAIN.items():
        if head.startswith(magic):
            raise InputError(f"{path}: found {what}.")


@contextmanager
def opened(path: Path, buffer: int = BUFFER) -> Iterator[tuple[BinaryIO, Tell]]:
    """The unpacked bytes of a file, with a progress bar by bytes on disk. Read errors are one sentence."""
    try:
        size = path.stat().st_size
        with (
            path.open("rb", buffering=buffer) as raw,
            progress_bar(f"reading {path.name}", size / MEGABYTE, unit="MB") as bar,
        ):
            done = 0

            def tell() -> None:
                nonlocal done
                now = raw.tell()
                bar.advance((now - done) / MEGABYTE)
                done = now

            packed = path.suffix.lower() == ".gz"
            if not packed:
                _check_plain(path, raw.read(8))
                raw.seek(0)
            # Buffered, because gzip's own 'readline' asks for a few bytes at a time.
            yield io.BufferedReader(gzip.GzipFile(fileobj=raw), buffer) if packed else raw, tell
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path}: damaged gzip file ({error}); download it again.") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error}).") from None
