"""Kill -9 anywhere in an embedding, and the same command resumes to the same file, bit for bit.

A kill comes just before, or some milliseconds after, the n-th file operation of a process: the opening,
renaming or deleting of a file among the output, the work beside it, or what was made earlier. These are
all over the process, from the first look at the earlier output to the last file of the work folder.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from heterformer.embedding.embed import embed_run
from heterformer.network.store import Network
from heterformer.training.run import Run
from tests.embedding.growing import first_run, first_state
from tests.learning import start_process

EVENTS = (
    "open",
    "os.rename",
    "os.remove",
    "os.mkdir",
    "os.rmdir",
    "os.truncate",
    "shutil.rmtree",
    "os.scandir",
)


class Killer:
    """An audit hook: counts file operations below a folder, notes them, and kills the process at one."""

    def __init__(self, folder: str, log: str, kill_at: int, delay: float) -> None:
        self.folder, self.kill_at, self.delay, self.count = folder, kill_at, delay, 0
        self.log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event not in EVENTS or not isinstance(arguments[0], (str, os.PathLike)):
            return
        path = os.fspath(arguments[0])
        if not str(path).startswith(self.folder):
            return
        self.count += 1
        os.write(self.log, f"{event} {str(path).removeprefix(self.folder)}\n".encode())
        if self.count == self.kill_at and self.delay:
            threading.Thread(target=self.kill, daemon=True).start()
        elif self.count == self.kill_at:
            self.kill()

    def kill(self) -> None:
        time.sleep(self.delay)
        os.kill(os.getpid(), signal.SIGKILL)


def _embed(run: str, out: str, network: str, since: str | None, log: str, kill_at: int, delay: float) -> None:
    sys.addaudithook(Killer(f"{Path(out).parent}{os.sep}", log, kill_at, delay))
    earlier = None if since is None else Path(since)
    embed_run(run, out, network=Path(network), since=earlier, device="cpu", part=40)


@pytest.fixture(scope="module")
def run() -> Run:
    return first_run("heterformer")


def with_papers(count: int) -> Network:
    state = first_state()
    papers = list(state.titles)
    for i in range(count):
        state = state.with_paper(
            f"new-{i}", f"kernel {papers[i]}", papers[2 * i : 2 * i + 2], [f"a-{i}"], "v"
        )
    return state.built()


@pytest.fixture(scope="module")
def grown() -> Network:
    """With so many new papers and authors that every step of the work has several parts."""
    return with_papers(60)


@pytest.mark.parametrize(("name", "earlier", "kills"), [("out.parquet", True, 10), ("out", False, 3)])
def test_kills_at_random_moments_change_nothing(
    run: Run, grown: Network, tmp_path: Path, name: str, earlier: bool, kills: int
) -> None:
    """Each process goes on from what the one before left, or starts over if that one came to the end."""
    since = tmp_path / "earlier" / "old.parquet" if earlier else None
    if since is not None:
        embed_run(run.path, since, network=with_papers(10).path, device="cpu")  # whose authors are kept
    whole, out = tmp_path / "whole" / name, tmp_path / "killed" / name
    operations = _finished(run, whole, grown, since)
    said = "\n".join(operations)
    steps = ("numbers", "states.", "paper.vectors", "author.folded", "author.seen", ".work.old", ".partial")
    assert all(step in said for step in steps)  # kills can meet any of it
    assert ("author.h0.unpacked" in said) == earlier
    rng, story, killed = random.Random(7), [""], 0
    while killed < kills:
        at, delay = rng.randint(1, len(operations)), rng.choice([0, 0, 0.002, 0.01])
        killed += _run(run, out, grown, since, kill_at=at, delay=delay)
        story.append(f"to be killed {delay} s after operation {at}; the last one: {_operations(out)[-1]}")
        if _contents(out):
            assert _contents(out) == _contents(whole), "\n".join(story)
            story.append("finished")
            _finished(run, out, grown, since)  # its work folder may still be there
            _remove(out)
    _finished(run, out, grown, since)
    assert _contents(out) == _contents(whole), "\n".join(story)
    assert [path.name for path in out.parent.iterdir()] == [name], "\n".join(story)
    assert len({line.rsplit("/")[-1] for line in story}) > kills / 2  # they died in different places


def _run(
    run: Run, out: Path, network: Network, since: Path | None, kill_at: int = 0, delay: float = 0
) -> bool:
    """Embed in a process of its own; whether it was killed."""
    out.parent.mkdir(exist_ok=True)
    log, earlier = out.parent.with_suffix(".log"), None if since is None else str(since)
    process = start_process(
        log.with_suffix(".said"),
        _embed,
        *(str(run.path), str(out), str(network.path), earlier, str(log), kill_at, delay),
    )
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL), log.with_suffix(".said").read_text()
    return process.exitcode != 0


def _finished(run: Run, out: Path, network: Network, since: Path | None) -> list[str]:
    """Embed undisturbed; the file operations that it took."""
    assert not _run(run, out, network, since)
    return _operations(out)


def _operations(out: Path) -> list[str]:
    """Those of the last process."""
    return out.parent.with_suffix(".log").read_text().splitlines()


def _contents(out: Path) -> dict[str, bytes]:
    files = sorted(out.iterdir()) if out.is_dir() else [out] if out.exists() else []
    return {file.name: file.read_bytes() for file in files}


def _remove(out: Path) -> None:
    for file in [*out.iterdir()] if out.is_dir() else []:
        file.unlink()
    (out.rmdir if out.is_dir() else out.unlink)()
