from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from heterformer.files import new_folder, replace_file, replace_folder, write_text
from heterformer.temporary import partial_file, partial_folder, remove_scratch, scratch_folder
from tests.networks import files

KILLED = """
import os, signal
from pathlib import Path
from heterformer.temporary import partial_file, partial_folder, scratch_folder
with {make} as partial:
    {write}
    os.kill(os.getpid(), signal.SIGKILL)
"""


def kill_in(make: str, write: str) -> None:
    """Kill a process within ``with make``."""
    done = subprocess.run([sys.executable, "-c", KILLED.format(make=make, write=write)], check=False)
    assert done.returncode == -signal.SIGKILL


@pytest.mark.parametrize("make", [partial_file, partial_folder])
def test_names_are_new_each_time_and_gone_afterwards(
    tmp_path: Path, make: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits here for a lock: a name that is used twice fails the test instead of hanging it."""
    lock = fcntl.flock
    monkeypatch.setattr(fcntl, "flock", lambda number, how: lock(number, how | fcntl.LOCK_NB))
    assert callable(make)
    with make(tmp_path / "out") as first, make(tmp_path / "out") as second:
        assert first != second
        assert {first.parent, second.parent} == {tmp_path}
        assert {first, second} == set(tmp_path.iterdir())  # neither is taken for a leftover
        assert first.stat().st_mode & 0o077 == 0  # nobody else's while it is written
    assert files(tmp_path) == set()


def test_what_a_kill_left_of_a_file_is_removed_by_the_next_writer(tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    kill_in(f"partial_file(Path({str(out)!r}))", "partial.write_text('half')")
    assert len(files(tmp_path)) == 1
    write_text(tmp_path / "out", "another output's leftovers stay")
    assert len(files(tmp_path)) == 2
    write_text(out, "x")
    assert files(tmp_path) == {"out", "out.txt"}


@pytest.mark.parametrize("writer", [new_folder, replace_folder])
def test_what_a_kill_left_of_a_folder_is_removed_by_the_next_writer(tmp_path: Path, writer: object) -> None:
    assert callable(writer)
    out = tmp_path / "out"
    kill_in(f"partial_folder(Path({str(out)!r}))", "(partial / 'a').write_text('half')")
    assert len(files(tmp_path)) == 2
    with writer(out) as partial:
        (partial / "b").write_text("x")
    assert files(tmp_path) == {"out", "out/b"}


def test_what_a_kill_left_of_scratch_folders_is_removed(tmp_path: Path) -> None:
    kill_in(f"scratch_folder(Path({str(tmp_path)!r}))", "(partial / 'states.bin').write_text('large')")
    (tmp_path / ".heterformer-notes").write_text("somebody's own")
    assert len(files(tmp_path)) == 3
    with scratch_folder(tmp_path) as scratch:
        assert {p.name for p in tmp_path.iterdir()} == {scratch.name, ".heterformer-notes"}
        remove_scratch(tmp_path)
        assert {p.name for p in tmp_path.iterdir()} == {scratch.name, ".heterformer-notes"}
    assert files(tmp_path) == {".heterformer-notes"}


def test_leftovers_of_earlier_versions_go_too(tmp_path: Path) -> None:
    (tmp_path / ".last.partial").mkdir()
    (tmp_path / ".last.partial" / "a").write_text("half")
    with replace_folder(tmp_path / "last") as partial:
        (partial / "a").write_text("x")
    assert files(tmp_path) == {"last", "last/a"}


def test_a_planted_link_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "thesis"
    victim.mkdir()
    (victim / "text").write_text("mine")
    folder = tmp_path / "out"
    folder.mkdir()
    for name in (".a.partial", ".a.old", "a", ".a.abcdefgh.partial", ".a.lock"):
        for target in (victim, victim / "text", victim / "new"):
            (folder / name).symlink_to(target)
            with replace_file(folder / "a") as partial:
                partial.write_text("x")
            (folder / "a").unlink()
            if not (folder / name).is_symlink():
                (folder / name).symlink_to(target)
            with replace_folder(folder / "a") as partial:
                (partial / "b").write_text("x")
            assert not (folder / "a").is_symlink()
            for path in folder.iterdir():
                path.unlink() if path.is_symlink() else [*map(os.unlink, path.iterdir()), path.rmdir()]
    assert files(tmp_path) == {"thesis", "thesis/text", "out"}
    assert (victim / "text").read_text() == "mine"
