"""Files and folders that are written whole or not at all."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from safetensors import SafetensorError

from heterformer.errors import InputError
from heterformer.progress import say


def check_new(out: Path) -> None:
    """Refuse a name that is taken, before any work is done."""
    if out.exists():
        raise InputError(f"{out}: exists already; remove it or choose another name.")


@contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """A temporary folder beside ``out`` that takes its name on success and vanishes on any failure."""
    check_new(out)
    made = [p for p in (out.parent, *out.parent.parents) if not p.exists()]  # innermost first
    folder = None
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=f".{out.name}.", suffix=".partial", dir=out.parent))
        yield folder
        folder.chmod(0o777 & ~_umask())  # mkdtemp's folder is private; the result should be an ordinary one
        os.rename(folder, out)
    except BaseException as error:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        for parent in made:
            with suppress(OSError):
                parent.rmdir()
        if isinstance(error, OSError):
            reason = error.strerror or error
            raise InputError(f"{out}: could not be written ({reason}); nothing was left behind.") from error
        raise


@contextmanager
def filled(folder: Path) -> Iterator[Path]:
    """A temporary folder whose files move into ``folder`` on success, each in the place of an older one."""
    with replace_folder(folder / ".new") as partial:
        yield partial
    for file in sorted((folder / ".new").iterdir()):
        os.replace(file, folder / file.name)
    (folder / ".new").rmdir()


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """A file that cannot be read, or does not hold what it should, is told in one sentence."""
    try:
        yield
    except InputError:
        raise
    except (OSError, ValueError, TypeError, KeyError, EOFError, RuntimeError, SafetensorError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"{path}: cannot be read or is damaged ({reason}).") from None


@contextmanager
def file_lock(path: Path, *, waiting: str = "", busy: str = "") -> Iterator[None]:
    """Work on ``path`` while no other process does: wait for it, or refuse with the sentence ``busy``.

    The lock is the process's: whatever ends it, the lock is gone. Its file beside ``path`` goes as well.
    """
    lock = path.with_name(f".{path.name}.lock")
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)  # which whoever had the lock may have removed
        with lock.open("a") as file:
            _take(file.fileno(), waiting, busy)
            if not _is_open_as(file.fileno(), lock):  # deleted meanwhile: whoever comes next has another file
                continue
            try:
                yield
            finally:
                lock.unlink(missing_ok=True)
            return


def _take(number: int, waiting: str, busy: str) -> None:
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        if busy:
            raise InputError(busy) from None
        if waiting:
            say(waiting)
        fcntl.flock(number, fcntl.LOCK_EX)


def _is_open_as(number: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(number), path.stat())
    except FileNotFoundError:
        return False


def _open_to_others(path: Path) -> None:
    """Some writers make files that only their owner may read; ours are ordinary ones."""
    path.chmod((0o777 if path.is_dir() else 0o666) & ~_umask())


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@contextmanager
def replace_file(path: Path) -> Iterator[Path]:
    """A file to write that takes the place of ``path`` on success: no reader sees half of it."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        yield partial
        _open_to_others(partial)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all."""
    with replace_file(path) as partial:
        partial.write_text(text, encoding="utf-8")


@contextmanager
def replace_folder(path: Path) -> Iterator[Path]:
    """A folder to write into that takes the place of ``path``, old contents and all, on success."""
    partial, old = path.with_name(f".{path.name}.partial"), path.with_name(f".{path.name}.old")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        yield partial
        for file in partial.iterdir():
            _open_to_others(file)
    except BaseException as error:
        shutil.rmtree(partial, ignore_errors=True)
        if isinstance(error, SafetensorError):  # what a full disk is to it
            reason = " ".join(str(error).split())
            told = f"could not be written ({reason}); what was there before is as it was"
            raise InputError(f"{path}: {told}.") from None
        raise
    if path.exists():
        shutil.rmtree(old, ignore_errors=True)
        os.rename(path, old)
    os.rename(partial, path)
    shutil.rmtree(old, ignore_errors=True)


def readable(path: Path) -> Path:
    """Where to read what ``replace_folder`` writes: if a kill came between its two renames, the old folder.

    A reader renames nothing, since it cannot tell a writer that was killed from one that is at work.
    """
    old = path.with_name(f".{path.name}.old")
    return old if old.exists() and not path.exists() else path
