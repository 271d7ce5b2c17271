"""Files and folders that are written whole or not at all."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TypeVar

from safetensors import SafetensorError

from heterformer.errors import InputError
from heterformer.escapes import terminal_text
from heterformer.progress import say
from heterformer.temporary import partial_file, partial_folder, remove_path

T = TypeVar("T")
CARD = "README.md"  # the model card in a folder of a run, a student or a published model
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
FULL_WORDS = re.compile(r"No space left on device|Disk quota exceeded|File too large")
MISSING = 10  # times that a reader finds no folder before there is none
NO_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.EACCES)  # file systems that cannot sync a folder


def check_new(out: Path) -> None:
    """Refuse a name that is taken, before any work is done."""
    if os.path.lexists(out):  # a symbolic link that leads nowhere counts too
        raise InputError(f"{out}: exists already; remove it or choose another name.")


@contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """A temporary folder beside ``out`` that takes its name on success and vanishes on any failure."""
    with _new(out), partial_folder(out) as folder:
        yield folder
        folder.chmod(0o777 & ~_umask())  # mkdtemp's folder is private; the result should be an ordinary one
        sync_tree(folder)
        check_new(out)  # it may have been made meanwhile
        os.rename(folder, out)
        sync_folder(out.parent)


@contextmanager
def new_file(out: Path) -> Iterator[Path]:
    """A temporary file beside ``out`` that takes its name on success and vanishes on any failure."""
    with _new(out), partial_file(out) as partial:
        yield partial
        _open_to_others(partial)
        sync_file(partial)
        check_new(out)
        os.rename(partial, out)
        sync_folder(out.parent)


@contextmanager
def _new(out: Path) -> Iterator[None]:
    """Make the folders above an output that does not exist yet; of two writers the second is refused."""
    check_new(out)
    made = _missing_parents(out)
    try:
        with file_lock(out, busy=f"{out}: another process is writing it; choose another name."):
            for parent in made:
                sync_folder(parent.parent)
            with writing(out):
                yield
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"{out}: could not be written ({reason}); nothing was left behind.") from error


@contextmanager
def filled(folder: Path) -> Iterator[Path]:
    """A temporary folder whose files move into ``folder`` on success, each in the place of an older one."""
    with writing(folder), partial_folder(folder / "new") as partial:
        yield partial
        for file in partial.iterdir():
            _open_to_others(file)
        sync_tree(partial)
        for file in sorted(partial.iterdir()):
            os.replace(file, folder / file.name)
        sync_folder(folder)


@contextmanager
def reading(path: Path, remedy: str = "") -> Iterator[None]:
    """Report a file that cannot be read, or has unexpected contents, in one sentence.

    Whatever a parser raises is a mistake of the file. Parsers in Rust panic with what is no ``Exception``.
    """
    try:
        yield
    except (InputError, GeneratorExit):
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        reason = terminal_text(" ".join(str(error).split()))[:200]
        raise damaged(path, reason, remedy) from None


def damaged(path: Path, reason: str, remedy: str = "") -> InputError:
    """The sentence about a file that is not what was written; ``remedy`` says what to do."""
    advice = f"; {remedy}" if remedy else ""
    return InputError(f"{path}: cannot be read or is damaged ({reason}){advice}.")


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Let a full disk be an ``OSError`` that names what was to be written, whichever library notices it."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL and error.filename is None:
            error.filename = str(path)
        raise
    except Exception as error:
        if isinstance(error, InputError) or not FULL_WORDS.search(str(error)):
            raise
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path)) from error


@contextmanager
def file_lock(path: Path, *, waiting: str = "", busy: str = "") -> Iterator[None]:
    """Work on ``path`` while no other process does: wait for it, or refuse with the sentence ``busy``.

    The lock is the process's: whatever ends it, the lock is gone. Its file beside ``path`` goes as well, and
    so do the folders that were made for it, unless something was written there.
    """
    made = _missing_parents(path)
    try:
        with _held_lock(path.with_name(f".{path.name}.lock"), waiting, busy):
            yield
    finally:
        for parent in made:
            with suppress(OSError):
                parent.rmdir()


def _missing_parents(path: Path) -> list[Path]:
    """The folders above ``path`` that do not exist, innermost first."""
    return [parent for parent in path.parents if not parent.exists()]


@contextmanager
def _held_lock(lock: Path, waiting: str, busy: str) -> Iterator[None]:
    while True:
        lock.parent.mkdir(parents=True, exist_ok=True)  # which whoever had the lock may have removed
        try:
            opened = _opened_lock(lock)
        except FileNotFoundError:  # removed just now
            continue
        with opened as file:
            _take(file.fileno(), waiting, busy)
            if not _is_open_as(file.fileno(), lock):  # deleted meanwhile: whoever comes next has another file
                continue
            try:
                yield
            finally:
                lock.unlink(missing_ok=True)
            return


def _opened_lock(path: Path) -> IO[bytes]:
    try:
        return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666), "r+b", buffering=0)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise InputError(f"{path}: is a symbolic link, expected none; remove it.") from None


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
    with writing(path), partial_file(path) as partial:
        yield partial
        _open_to_others(partial)
        sync_file(partial)
        os.replace(partial, path)
        sync_folder(path.parent)


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all."""
    with replace_file(path) as partial:
        partial.write_text(text, encoding="utf-8")


def remove_file(path: Path) -> None:
    """Remove a file for good: neither a kill nor a power cut afterwards brings it back."""
    if os.path.lexists(path):
        path.unlink(missing_ok=True)
        sync_folder(path.parent)


@contextmanager
def replace_folder(path: Path) -> Iterator[Path]:
    """A folder to write into that takes the place of ``path``, old contents and all, on success."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with writing(path), partial_folder(path) as partial:
        yield partial
        partial.chmod(0o777 & ~_umask())
        for file in partial.iterdir():
            _open_to_others(file)
        sync_tree(partial)
        _exchange(partial, path)


def _exchange(new: Path, path: Path) -> None:
    """Put a folder in the place of another, which stays readable until the new one is there for good."""
    old = _old(path)
    if os.path.lexists(path):
        remove_path(old)
        os.rename(path, old)
    os.rename(new, path)
    sync_folder(path.parent)
    remove_path(old)


def _old(path: Path) -> Path:
    return path.with_name(f".{path.name}.old")


def readable(path: Path) -> Path:
    """Where to read what ``replace_folder`` writes: if a kill came between its two renames, the old folder.

    A reader renames nothing, since it cannot tell a writer that was killed from one that is at work.
    """
    if not path.name:  # such as "."
        return path
    old = _old(path)
    return old if old.exists() and not path.exists() else path


def read_folder(path: Path, read: Callable[[Path], T]) -> T:
    """``read`` what ``replace_folder`` writes, again if it was replaced meanwhile.

    Never gives parts of two contents.
    """
    missing = 0
    while True:
        folder = readable(path)
        before = _identity(folder)
        missing += before is None  # it may be between its two renames
        try:
            content = read(folder)
        except (OSError, ValueError, InputError, SafetensorError):
            unmoved = readable(path) == folder  # a replaced folder keeps its identity under another name
            if missing > MISSING or (unmoved and before is not None and _identity(folder) == before):
                raise
        else:
            if _identity(readable(path)) == before:
                return content
        time.sleep(0.01)


def _identity(folder: Path) -> tuple[int, ...] | None:
    try:
        stat = folder.stat()
    except OSError:
        return None
    return stat.st_dev, stat.st_ino, stat.st_mtime_ns


# --- Durability: what a rename makes count must be on the disk before ------------------------------------


def sync_file(path: Path) -> None:
    """Wait until the contents of a file are on the disk."""
    _sync(path, os.O_RDONLY)


def sync_folder(path: Path) -> None:
    """Wait until the names in a folder are on the disk."""
    try:
        _sync(path, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        if error.errno not in NO_SYNC:
            raise


def sync_tree(folder: Path) -> None:
    """Wait until a folder is on the disk with all in it, names after what they stand for."""
    for parent, _, names in os.walk(folder, topdown=False):
        for name in names:
            sync_file(Path(parent, name))
        sync_folder(Path(parent))


def _sync(path: Path, flags: int) -> None:
    number = os.open(path, flags)
    try:
        os.fsync(number)
    finally:
        os.close(number)
