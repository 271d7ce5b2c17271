from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from safetensors import SafetensorError

from heterformer.errors import InputError
from heterformer.files import (
    check_new,
    file_lock,
    new_file,
    new_folder,
    read_folder,
    readable,
    replace_file,
    replace_folder,
    write_text,
    writing,
)
from tests.networks import files


class Killed(BaseException):
    """As sudden as kill -9: nobody expects it."""


def killed_at_rename(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Die just before the given rename, counted from 1."""
    calls: list[object] = []
    rename = os.rename

    def counted(source: Path, target: Path) -> None:
        calls.append(source)
        if len(calls) == number:
            raise Killed
        rename(source, target)

    monkeypatch.setattr(os, "rename", counted)


def die_writing(path: Path) -> None:
    path.write_text("half")
    raise Killed


def fill_up(folder: Path) -> SafetensorError:
    (folder / "a").write_text("half")
    return SafetensorError("I/O error: No space left on device")


def replaced(folder: Path, content: str) -> None:
    with replace_folder(folder) as partial:
        (partial / "a").write_text(content)


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_text(path, "old")
    with replace_file(path) as partial:
        partial.write_text("half of the n")
        assert path.read_text() == "old"
        partial.write_text("new")
    assert path.read_text() == "new"
    assert files(tmp_path) == {"a.txt"}


def test_a_file_stays_as_it_was_if_writing_fails(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_text(path, "old")
    with pytest.raises(Killed), replace_file(path) as partial:
        die_writing(partial)
    assert path.read_text() == "old"
    write_text(path, "new")  # and what the failure left is in nobody's way
    assert files(tmp_path) == {"a.txt"}


def test_a_folder_is_replaced_with_all_its_contents(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "last"
    replaced(folder, "old")
    (folder / "more").write_text("of the old")
    replaced(folder, "new")
    assert (folder / "a").read_text() == "new"
    assert files(folder.parent) == {"last", "last/a"}


def test_a_folder_stays_as_it_was_if_writing_fails(tmp_path: Path) -> None:
    folder = tmp_path / "last"
    replaced(folder, "old")
    with pytest.raises(Killed), replace_folder(folder) as partial:
        die_writing(partial / "b")
    assert (folder / "a").read_text() == "old"
    replaced(folder, "new")
    assert files(tmp_path) == {"last", "last/a"}


@pytest.mark.parametrize("rename", [1, 2])
def test_a_folder_survives_a_kill_at_any_rename(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rename: int
) -> None:
    folder = tmp_path / "last"
    replaced(folder, "old")
    with monkeypatch.context() as patched:
        killed_at_rename(patched, rename)
        with pytest.raises(Killed):
            replaced(folder, "new")
    assert (readable(folder) / "a").read_text() == "old"
    replaced(folder, "newer")
    assert (folder / "a").read_text() == "newer"
    assert files(tmp_path) == {"last", "last/a"}


def test_a_folder_survives_two_kills_between_the_renames(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "last"
    replaced(folder, "old")
    for _ in range(2):
        with monkeypatch.context() as patched:
            killed_at_rename(patched, 2 if folder.exists() else 1)
            with pytest.raises(Killed):
                replaced(folder, "new")
        assert not folder.exists()
    assert (readable(folder) / "a").read_text() == "old"


def test_an_old_folder_that_a_kill_left_beside_the_new_one_goes(tmp_path: Path) -> None:
    (tmp_path / "last").mkdir()
    (tmp_path / ".last.old").mkdir()
    assert readable(tmp_path / "last") == tmp_path / "last"
    replaced(tmp_path / "last", "new")
    assert files(tmp_path) == {"last", "last/a"}


def test_what_never_was_is_not_there(tmp_path: Path) -> None:
    assert not readable(tmp_path / "last").exists()


def test_a_reader_between_the_renames_is_not_in_the_writer_s_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "last"
    replaced(folder, "old")
    rename, seen = os.rename, []

    def watched(source: Path, target: Path) -> None:
        rename(source, target)
        seen.append((readable(folder) / "a").read_text())

    monkeypatch.setattr(os, "rename", watched)
    replaced(folder, "new")
    assert seen == ["old", "new"]
    assert files(tmp_path) == {"last", "last/a"}


def test_a_new_folder_appears_whole(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "network"
    with new_folder(out) as partial:
        (partial / "a").write_text("x")
        assert not out.exists()
    assert files(out.parent) == {"network", "network/a"}
    umask = os.umask(0)
    os.umask(umask)
    assert out.stat().st_mode & 0o777 == 0o777 & ~umask


def test_a_new_folder_leaves_nothing_behind_if_writing_fails(tmp_path: Path) -> None:
    out = tmp_path / "network"
    with pytest.raises(Killed), new_folder(out) as partial:
        die_writing(partial / "a")
    assert files(tmp_path) == set()


def test_a_full_disk_is_told_in_one_sentence(tmp_path: Path) -> None:
    out = tmp_path / "network"
    with pytest.raises(InputError) as caught, new_folder(out):
        raise OSError(28, "No space left on device")
    sentence = "could not be written (No space left on device); nothing was left behind."
    assert str(caught.value) == f"{out}: {sentence}"
    assert files(tmp_path) == set()


def test_a_disk_too_full_for_tensors_is_told_in_one_sentence(tmp_path: Path) -> None:
    folder = tmp_path / "last"
    replaced(folder, "old")
    with pytest.raises(OSError, match="No space left on device") as caught, replace_folder(folder) as partial:
        raise fill_up(partial)
    assert caught.value.filename == str(folder)
    assert (folder / "a").read_text() == "old"
    assert files(tmp_path) == {"last", "last/a"}


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), RuntimeError("os: File too large")]
)
@pytest.mark.parametrize("write", [replace_file, replace_folder, writing])
def test_a_full_disk_names_what_was_to_be_written(write: Any, error: Exception, tmp_path: Path) -> None:
    """Whichever library notices it; the command line prints file and reason."""
    with pytest.raises(OSError, match="No space left on device") as caught, write(tmp_path / "out"):
        raise type(error)(*error.args)
    assert caught.value.filename == str(tmp_path / "out")
    assert files(tmp_path) == set()


def test_other_mistakes_are_not_taken_for_a_full_disk(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="another"), writing(tmp_path):
        raise RuntimeError("another mistake")
    with pytest.raises(InputError), writing(tmp_path):
        raise InputError("No space left on device")


def test_a_new_folder_overwrites_nothing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="exists already; remove it or choose another name"):
        new_folder(tmp_path).__enter__()


def test_a_new_file_appears_whole_and_overwrites_nothing(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "graph.xml"
    with new_file(out) as partial:
        partial.write_text("x")
        assert not out.exists()
    assert files(tmp_path) == {"deep", "deep/graph.xml"}
    with pytest.raises(InputError, match="exists already"):
        new_file(out).__enter__()
    with pytest.raises(Killed), new_file(tmp_path / "new" / "graph.xml") as partial:
        die_writing(partial)
    assert files(tmp_path) == {"deep", "deep/graph.xml"}


@pytest.mark.parametrize("new", [new_folder, new_file])
def test_a_link_that_leads_nowhere_is_a_name_that_is_taken(tmp_path: Path, new: object) -> None:
    assert callable(new)
    (tmp_path / "out").symlink_to(tmp_path / "victim")
    with pytest.raises(InputError, match="exists already"):
        new(tmp_path / "out").__enter__()
    with pytest.raises(InputError, match="exists already"):
        check_new(tmp_path / "out")
    assert files(tmp_path) == {"out"}


@pytest.mark.parametrize("new", [new_folder, new_file])
def test_of_two_writers_of_a_new_output_the_second_is_refused(tmp_path: Path, new: object) -> None:
    assert callable(new)
    out = tmp_path / "out"
    with new(out), pytest.raises(InputError, match="out: another process is writing it"):
        new(out).__enter__()
    assert files(tmp_path) - {"out"} == set()


def test_an_output_made_meanwhile_by_something_else_stays(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="exists already"), new_file(tmp_path / "out"):
        (tmp_path / "out").write_text("not ours")
    assert (tmp_path / "out").read_text() == "not ours"


# --- Readers beside a writer -----------------------------------------------------------------------------


def both(folder: Path) -> tuple[str, str]:
    return (folder / "a").read_text(), (folder / "b").read_text()


def replaced_both(folder: Path, content: str) -> None:
    with replace_folder(folder) as partial:
        (partial / "a").write_text(content)
        (partial / "b").write_text(content)


def test_a_reader_starts_again_if_the_folder_was_replaced_meanwhile(tmp_path: Path) -> None:
    folder, calls = tmp_path / "last", []
    replaced_both(folder, "old")

    def read(place: Path) -> tuple[str, str]:
        first = (place / "a").read_text()
        calls.append(first)
        if len(calls) == 1:
            replaced_both(folder, "new")
        return first, (place / "b").read_text()

    assert read_folder(folder, read) == ("new", "new")
    assert calls == ["old", "new"]


def test_a_reader_starts_again_if_the_folder_was_moved_meanwhile(tmp_path: Path) -> None:
    """It then has another name for a moment: a writer's first rename has come, the second has not."""
    folder, calls = tmp_path / "last", []
    replaced_both(folder, "old")

    def read(place: Path) -> tuple[str, str]:
        calls.append(place.name)
        if len(calls) == 1:
            folder.rename(tmp_path / ".last.old")
        return both(place)

    assert read_folder(folder, read) == ("old", "old")
    assert calls == ["last", ".last.old"]


def test_a_reader_never_fails_and_never_mixes_while_a_writer_is_at_work(tmp_path: Path) -> None:
    folder, done = tmp_path / "last", threading.Event()
    replaced_both(folder, "0")

    def write() -> None:
        for number in range(60):
            replaced_both(folder, str(number))
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    while not done.is_set():
        first, second = read_folder(folder, both)
        assert first == second
    writer.join()


def test_what_cannot_be_read_although_nobody_writes_is_an_error(tmp_path: Path) -> None:
    replaced(tmp_path / "last", "old")
    with pytest.raises(FileNotFoundError):
        read_folder(tmp_path / "last", both)
    with pytest.raises(FileNotFoundError):
        read_folder(tmp_path / "never", both)


# --- Locks -----------------------------------------------------------------------------------------------


def taken(path: Path) -> bool:
    """Whether somebody works on ``path``."""
    with path.with_name(f".{path.name}.lock").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


def test_nobody_else_works_on_it_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "new" / "out"
    with file_lock(path):
        assert taken(path)
        with (
            pytest.raises(InputError, match="out is being written"),
            file_lock(path, busy="out is being written"),
        ):
            raise AssertionError
        assert taken(path)
    assert files(tmp_path) == set()
    with pytest.raises(Killed), file_lock(path):
        raise Killed
    assert files(tmp_path) == set()


def test_a_lock_removes_no_folder_that_is_in_use_or_was_there(tmp_path: Path) -> None:
    with file_lock(tmp_path / "new" / "out"):
        (tmp_path / "new" / "out").touch()
    assert files(tmp_path) == {"new", "new/out"}
    (tmp_path / "old").mkdir()
    with file_lock(tmp_path / "old" / "out"):
        pass
    assert files(tmp_path) == {"new", "new/out", "old"}


def test_the_next_one_waits_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, order = tmp_path / "out", []

    def second() -> None:
        with file_lock(path, waiting="waiting for out"):
            order.append("second")

    threads = [threading.Thread(target=second) for _ in range(3)]
    with file_lock(path):
        for thread in threads:
            thread.start()
        while "".join(capsys.readouterr().err).count("waiting for out") < 1:
            pass
        order.append("first")
    for thread in threads:
        thread.join(20)
    assert order == ["first", "second", "second", "second"]
    assert files(tmp_path) == set()


def test_a_lock_of_a_process_that_died_holds_nobody_up(tmp_path: Path) -> None:
    lock = tmp_path / ".out.lock"
    held = f"file = open({str(lock)!r}, 'a'); fcntl.flock(file, fcntl.LOCK_EX)"
    code = f"import fcntl; {held}; print(1, flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=-1, stdout=-1) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with pytest.raises(InputError), file_lock(tmp_path / "out", busy="busy"):
            raise AssertionError
        other.kill()
        other.wait()
    assert lock.exists()
    with file_lock(tmp_path / "out", busy="busy"):
        pass
    assert files(tmp_path) == set()


def test_a_lock_whose_folder_was_removed_meanwhile(tmp_path: Path) -> None:
    path, got = tmp_path / "folder" / "file", threading.Event()

    def wait() -> None:
        with file_lock(path):
            got.set()

    with file_lock(path):
        waiter = threading.Thread(target=wait)
        waiter.start()
        time.sleep(0.2)  # it waits by now, or the test proves nothing
        (tmp_path / "folder").rename(tmp_path / "gone")
    waiter.join(60)
    assert got.is_set()


def test_a_lock_does_not_follow_a_planted_link(tmp_path: Path) -> None:
    (tmp_path / ".out.lock").symlink_to(tmp_path / "victim")
    with pytest.raises(InputError, match=r".out.lock: is a symbolic link"), file_lock(tmp_path / "out"):
        raise AssertionError
    assert not (tmp_path / "victim").exists()
