"""What a power cut would leave: a record of what was synced, kept true while files are written and renamed.

Nothing that is not synced counts as being on the disk. So at every rename all that it makes count must have
been synced since it was last changed, and nothing old may be removed while a rename in its folder, which may
have replaced it, is not synced.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


class Disk:
    """Checks the order of ``os.fsync``, ``os.rename``, ``os.replace`` and of removing folders."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.synced: dict[tuple[int, int], tuple[int, int]] = {}  # inode to (changed, size) when synced
        self.unsynced_folders: set[Path] = set()  # with names that a cut would take back
        self.renamed: list[str] = []
        self.wrong: list[str] = []

    def sync(self, number: int) -> None:
        stat = os.fstat(number)
        self.synced[stat.st_dev, stat.st_ino] = stat.st_mtime_ns, stat.st_size
        self.unsynced_folders = {p for p in self.unsynced_folders if not _is(p, stat)}

    def rename(self, source: Path, target: Path) -> None:
        if self.root not in target.parents or source.name.endswith(".work"):
            return
        if not target.name.endswith(".old"):  # what is put aside was on the disk when it was made
            self.renamed.append(target.relative_to(self.root).as_posix())
            for path in (source, *source.rglob("*")):
                stat = path.stat()
                if self.synced.get((stat.st_dev, stat.st_ino)) != (stat.st_mtime_ns, stat.st_size):
                    self.wrong.append(f"{path} counts as {target} before it is synced")
        self.unsynced_folders.add(target.parent)

    def remove(self, path: Path) -> None:
        if path.name.endswith(".old") and path.parent in self.unsynced_folders:
            self.wrong.append(f"{path} is removed before what takes its place is synced")

    def check(self, *outputs: str) -> None:
        """All that was written is on the disk, and so are these outputs."""
        assert self.wrong == []
        assert self.unsynced_folders == set()
        assert set(outputs) <= set(self.renamed)


def _is(path: Path, stat: os.stat_result) -> bool:
    try:
        return os.path.samestat(path.stat(), stat)
    except FileNotFoundError:
        return True  # a temporary folder that has gone since


@contextmanager
def watched_disk(root: Path) -> Iterator[Disk]:
    """Record whatever is written below ``root``."""
    disk = Disk(root)

    def before(function: Callable[..., Any], note: Callable[..., None], paths: int) -> Callable[..., Any]:
        def called(*arguments: Any, **options: Any) -> Any:
            note(*(Path(path) for path in arguments[:paths]))
            return function(*arguments, **options)

        return called

    fsync = os.fsync

    def synced(number: int) -> None:
        fsync(number)
        disk.sync(number)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", synced)
        patch.setattr(os, "rename", before(os.rename, disk.rename, 2))
        patch.setattr(os, "replace", before(os.replace, disk.rename, 2))
        patch.setattr(shutil, "rmtree", before(shutil.rmtree, disk.remove, 1))
        yield disk
