"""Digests of files that were written, by which ``heterformer check`` finds a changed byte.

A folder that is written whole has them in ``digests.json``, beside the sizes that are compared whenever it
is opened. A Parquet table of vectors is one file and carries its own: between the last page and the footer,
where readers of Parquet do not look, stand a magic word and two digests, of the footer and of all the rest.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from heterformer.errors import InputError
from heterformer.untrusted import is_inside, short_repr

DIGESTS = "digests.json"
SIZE = 16  # bytes of a digest
BYTES_AT_ONCE = 1 << 22
SEAL = b"heterformer-seal"
TAIL = b"PAR1"

Sizes = Mapping[str, tuple[int, str]]  # size and digest of files by name


def file_digest(path: Path) -> str:
    """The digest of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=SIZE)).hexdigest()


def bytes_digest(path: Path, size: int) -> str:
    """The digest of the first ``size`` bytes of a file."""
    with path.open("rb") as file:
        return str(_digest_of_range(file, 0, size).hexdigest())


def write_digests(folder: Path, names: Iterable[str] | None = None, known: Sizes | None = None) -> None:
    """Note sizes and digests of files in a folder that nobody has opened yet; by default of all in it.

    ``known`` are those that need not be read again. The note is not written under another name first:
    whoever writes the folder does that for all of it.
    """
    (folder / DIGESTS).write_text(digests_text(folder, names, known), encoding="utf-8")


def digests_text(folder: Path, names: Iterable[str] | None = None, known: Sizes | None = None) -> str:
    """What ``write_digests`` writes."""
    known = known or {}
    names = _files(folder) if names is None else sorted(names)
    values = {n: known.get(n) or ((folder / n).stat().st_size, file_digest(folder / n)) for n in names}
    return json.dumps({"files": values, "digest": _of_values(values)}, indent=1)


def tree_digests(folder: Path, counts: Callable[[str], bool] = bool) -> tuple[Sizes, str]:
    """Size and digest of each file that ``counts``, and of all with their names; each is read once."""
    files: dict[str, tuple[int, str]] = {}
    together = hashlib.blake2b(digest_size=SIZE)
    for name in filter(counts, _files(folder)):
        together.update(name.encode())
        own = hashlib.blake2b(digest_size=SIZE)
        with (folder / name).open("rb") as file:
            while block := file.read(BYTES_AT_ONCE):
                together.update(block)
                own.update(block)
            files[name] = file.tell(), own.hexdigest()
    return files, together.hexdigest()


def _files(folder: Path) -> list[str]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != DIGESTS)
    return [path.relative_to(folder).as_posix() for path in paths]


def stored_digests(folder: Path, remedy: str) -> Sizes | None:
    """Size and digest of each noted file; None if the folder has no such note."""
    path = folder / DIGESTS
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        files = {name: (int(size), str(digest)) for name, (size, digest) in content["files"].items()}
        sound = content["digest"] == _of_values(content["files"]) and all(map(is_inside, files))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        sound = False
    if not sound:
        raise InputError(f"{path}: is damaged; {remedy}.")
    return files


def _of_values(values: Mapping[str, Any]) -> str:
    text = json.dumps(values, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=SIZE).hexdigest()


def check_sizes(folder: Path, remedy: str, without: Iterable[str] = ()) -> None:
    """Refuse a folder one of whose files is gone, cut off or another one's; no file is read for that."""
    for name, (size, _) in (stored_digests(folder, remedy) or {}).items():
        if name not in without:
            _check_size(folder / name, size, remedy)


def _check_size(path: Path, expected: int, remedy: str) -> None:
    try:
        size = path.stat().st_size
    except OSError:
        raise InputError(f"{path}: is missing; {remedy}.") from None
    if size != expected:
        raise InputError(f"{path}: is damaged: it has {size:,} bytes, expected {expected:,}; {remedy}.")


def changed_files(folder: Path, remedy: str) -> Iterator[InputError]:
    """What is wrong with files of a folder by their digests; each file is read once."""
    for name, (size, digest) in (stored_digests(folder, remedy) or {}).items():
        try:
            _check_size(folder / name, size, remedy)
        except InputError as error:
            yield error
            continue
        if file_digest(folder / name) != digest:
            yield InputError(f"{folder / name}: its contents have changed since it was written; {remedy}.")


# --- Parquet tables --------------------------------------------------------------------------------------


def seal_parquet(path: Path) -> None:
    """Put digests into a Parquet table that was just written."""
    with path.open("r+b") as file:
        start = _footer_start(file, path)
        file.seek(start)
        footer = file.read()
        seal = SEAL + _digest_of(footer).digest() + _digest_of_range(file, 0, start).digest()
        file.seek(start)
        file.write(seal + footer)


def check_footer(path: Path) -> None:
    """Refuse a sealed table whose footer has changed: what it says is trusted by those who read pages."""
    with path.open("rb") as file:
        start = _footer_start(file, path)
        seal = _seal(file, start)
        file.seek(start)
        if seal is not None and _digest_of(file.read()).digest() != seal[:SIZE]:
            raise InputError(f"{path}: its contents have changed since it was written; make it again.")


def check_parquet(path: Path) -> bool:
    """Compare all bytes with the digests; false if there are none."""
    check_footer(path)
    with path.open("rb") as file:
        start = _footer_start(file, path)
        seal = _seal(file, start)
        if seal is None:
            return False
        if _digest_of_range(file, 0, start - len(SEAL) - 2 * SIZE).digest() != seal[SIZE:]:
            raise InputError(f"{path}: its contents have changed since it was written; make it again.")
    return True


def _seal(file: BinaryIO, footer_start: int) -> bytes | None:
    length = len(SEAL) + 2 * SIZE
    if footer_start < length:
        return None
    file.seek(footer_start - length)
    seal = file.read(length)
    return seal[len(SEAL) :] if seal.startswith(SEAL) else None


def _footer_start(file: BinaryIO, path: Path) -> int:
    """Where the footer begins; its length and a magic word are the last eight bytes."""
    end = file.seek(0, os.SEEK_END)
    file.seek(max(end - 8, 0))
    last = file.read()
    start = end - 8 - int.from_bytes(last[:4], "little")
    if len(last) < 8 or last[4:] != TAIL or start < len(TAIL):
        raise InputError(f"{path}: is no Parquet table or is damaged (it ends in {short_repr(last[-4:])}).")
    return start


def _digest_of(content: bytes) -> Any:
    return hashlib.blake2b(content, digest_size=SIZE)


def _digest_of_range(file: BinaryIO, start: int, stop: int) -> Any:
    digest = hashlib.blake2b(digest_size=SIZE)
    file.seek(start)
    while start < stop and (block := file.read(min(BYTES_AT_ONCE, stop - start))):
        digest.update(block)
        start += len(block)
    return digest
