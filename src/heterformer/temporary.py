"""Temporary files and folders beside an output: names nobody can guess, gone with the process that made them.

A kill leaves a temporary name behind, but not the lock on it: the next writer of the same output removes
whatever nobody holds.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

SUFFIX = ".partial"
SCRATCH = ".heterformer-"  # prefix of folders for what is needed while a command runs
RANDOM = "[a-z0-9_]{8}"  # what tempfile puts between prefix and suffix


@contextmanager
def partial_file(path: Path) -> Iterator[Path]:
    """A new empty file in the folder of ``path``; it is removed at the end if it is still there."""
    remove_leftovers(path)
    while True:
        number, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=SUFFIX, dir=path.parent)
        try:
            if not _hold(number, Path(name)):
                continue
            yield Path(name)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(name)
            os.close(number)
        return


@contextmanager
def partial_folder(path: Path) -> Iterator[Path]:
    """A new empty folder beside ``path``; it is removed at the end if it is still there."""
    remove_leftovers(path)
    with _held_folder(f".{path.name}.", SUFFIX, path.parent) as folder:
        yield folder


@contextmanager
def scratch_folder(parent: Path | None = None) -> Iterator[Path]:
    """A folder for what is needed meanwhile; in ``parent``, what a kill left of such folders goes first."""
    if parent is None:
        with tempfile.TemporaryDirectory(prefix=SCRATCH.lstrip(".")) as name:
            yield Path(name)
        return
    remove_scratch(parent)
    with _held_folder(SCRATCH, "", parent) as folder:
        yield folder


def remove_leftovers(path: Path) -> None:
    """Remove what writers of ``path`` left when they were killed."""
    named = re.compile(rf"\.{re.escape(path.name)}\.(?:{RANDOM}\.)?partial")
    _remove_unheld(path.parent, named)


def remove_scratch(parent: Path) -> None:
    """Remove the scratch folders in ``parent`` that a kill left."""
    _remove_unheld(parent, re.compile(re.escape(SCRATCH) + RANDOM))


def is_leftover(path: Path) -> bool:
    """Whether a name is one that a killed writer may have left."""
    name = path.name
    return name.startswith(SCRATCH) or (name.startswith(".") and name.endswith((SUFFIX, ".lock")))


def remove_path(path: Path) -> None:
    """Remove a file, a folder with all in it, or a symbolic link but not what it points to."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def _held_folder(prefix: str, suffix: str, parent: Path) -> Iterator[Path]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=prefix, suffix=suffix, dir=parent))
        number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            if not _hold(number, folder):
                continue
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(number)
        return


def _hold(number: int, path: Path) -> bool:
    """Lock what was just made; false if a writer that saw it before it was locked has removed it."""
    with suppress(OSError):  # a file system without locks: nobody will remove it then
        fcntl.flock(number, fcntl.LOCK_EX)
    try:
        return os.path.samestat(os.fstat(number), os.lstat(path))
    except FileNotFoundError:
        return False


def _remove_unheld(folder: Path, named: re.Pattern[str]) -> None:
    with suppress(OSError):
        for name in [entry.name for entry in os.scandir(folder) if named.fullmatch(entry.name)]:
            with suppress(OSError):
                _remove_if_unheld(folder / name)


def _remove_if_unheld(path: Path) -> None:
    if path.is_symlink():  # we make none
        path.unlink()
        return
    number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        remove_path(path)
    finally:
        os.close(number)
