"""Damaged files: every file of a folder truncated, emptied, changed in one byte, swapped with another."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DAMAGES = ("halved", "without its end", "emptied", "flipped", "swapped", "gone")


def plain_files(folder: Path) -> list[str]:
    """All files of a folder, by name."""
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def flipped(data: bytes, seed: object) -> bytes:
    """The same but for one byte."""
    draw = random.Random(str(seed))
    place, change = draw.randrange(len(data)), draw.randrange(1, 256)
    return data[:place] + bytes([data[place] ^ change]) + data[place + 1 :]


def swapped(path: Path, seed: object) -> bytes:
    """The contents of another file, of the same kind if there is one that differs."""
    folder = path.parent
    others = (*sorted(folder.glob(f"*{path.suffix}")), *sorted(folder.parent.rglob("*")))
    data = path.read_bytes()
    return next(p.read_bytes() for p in others if p.is_file() and p.read_bytes() != data)


@contextmanager
def damaged_file(path: Path, damage: str, seed: object = 0) -> Iterator[None]:
    """A file that is damaged as long as the context lasts."""
    data = path.read_bytes()
    changed = {
        "halved": lambda: data[: len(data) // 2],
        "without its end": lambda: data[:-1],
        "emptied": lambda: b"",
        "flipped": lambda: flipped(data, (path.name, seed)),
        "swapped": lambda: swapped(path, seed),
    }
    try:
        if damage == "gone":
            path.unlink()
        else:
            path.write_bytes(changed[damage]())
        yield
    finally:
        path.write_bytes(data)
