"""APT's lists on disk: paragraphs of fields, plain or compressed, and the order of Debian versions."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from heterformer.errors import InputError

PLAIN = ""
COMPRESSIONS = (PLAIN, ".lz4", ".gz", ".xz", ".zst", ".bz2")  # what APT keeps, by Acquire::GzipIndexes

VersionKey = tuple[int, tuple[Any, ...], tuple[Any, ...]]


def find_lists(folder: Path, name: str) -> list[Path]:
    """The lists in ``folder`` whose name is ``name`` or ends in ``_name``, whatever their compression."""
    paths = [p for ending in COMPRESSIONS for p in folder.glob(f"*{name}{ending}") if p.is_file()]
    return sorted(p for p in paths if p.name.startswith(name) or f"_{name}" in p.name)


def paragraphs(path: Path, fields: Collection[str]) -> Iterator[dict[str, str]]:
    """The paragraphs of a list, each with those of the wanted fields that it has.

    A continued field keeps its line ends, each line without its leading space. A line that is no field
    (a file cut short has one) is passed over.
    """
    names = {field.lower(): field for field in fields}  # field names know no case
    paragraph: dict[str, str] = {}
    field: str | None = None
    for line in _lines(path):
        if not line or line.isspace():
            if paragraph:
                yield paragraph
            paragraph, field = {}, None
        elif line[0] in " \t":
            if field is not None:
                paragraph[field] += f"\n{line[1:]}"
        else:
            name, colon, value = line.partition(":")
            field = names.get(name.lower()) if colon else None
            if field is not None:
                paragraph[field] = value.strip()
    if paragraph:
        yield paragraph


def _lines(path: Path) -> Iterator[str]:
    """Decoded lines without their ends. A byte that is not UTF-8 costs its letter, not the list."""
    try:
        with _opened(path) as stream:
            for line in io.TextIOWrapper(stream, encoding="utf-8", errors="replace", newline="\n"):
                yield line.rstrip("\r\n")
    except (OSError, EOFError, zlib.error, lzma.LZMAError, pa.ArrowException) as error:
        reason = " ".join(str(error).split())
        raise InputError(
            f"{path}: cannot be read ({reason}); fetch it again with 'apt-get update'."
        ) from None


def _opened(path: Path) -> Any:
    match path.suffix:
        case ".gz":
            return gzip.open(path)
        case ".xz":
            return lzma.open(path)
        case ".bz2":
            return bz2.open(path)
        case ".lz4" | ".zst":  # Python has neither, Arrow has both
            compression = {".lz4": "lz4", ".zst": "zstd"}[path.suffix]
            return io.BufferedReader(cast(io.RawIOBase, pa.input_stream(str(path), compression=compression)))
        case _:
            return path.open("rb")


def version_key(version: str) -> VersionKey:
    """What sorts versions as dpkg does: epoch, upstream version, revision."""
    epoch, colon, rest = version.partition(":")
    if not (colon and epoch.isdigit()):
        epoch, rest = "0", version
    upstream, _, revision = rest.rpartition("-") if "-" in rest else (rest, "", "")
    return int(epoch), _part_key(upstream), _part_key(revision)


def _part_key(part: str) -> tuple[Any, ...]:
    """Text and numbers in turn; in text '~' comes first, then its end, then letters, then all else."""
    key: list[Any] = []
    for text, number in re.findall(r"([^0-9]*)([0-9]*)", part):
        key += ((*map(_letter_key, text), 0), int(number or 0))
    return tuple(key)


def _letter_key(letter: str) -> int:
    return -1 if letter == "~" else ord(letter) if letter.isalpha() else ord(letter) + 256
