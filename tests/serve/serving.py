"""A server in a process of its own, and a service without HTTP."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import httpx

import heterformer
from heterformer.network.build.frames import temporary_folder
from heterformer.search.searcher import Searcher
from heterformer.serve.options import ServeOptions
from heterformer.serve.service import Service
from tests.search.searching import tiny_run

SECONDS = 120  # in which a server starts, ends, or answers; far more than it takes


@cache
def served_run() -> Path:
    """The tiny run with its vectors, which a test may not change."""
    Searcher(tiny_run()).store  # noqa: B018 - makes them
    return tiny_run()


def copied_run(name: str = "copy") -> Path:
    """A run of its own."""
    return Path(shutil.copytree(served_run(), temporary_folder() / name))


def wait_for(condition: Callable[[], object]) -> None:
    """Until it is true: what a server logs, counts or takes anew may come a moment after an answer."""
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.02)


@cache
def service() -> Service:
    return Service([served_run()], ServeOptions(device="cpu"))


class Server:
    """``heterformer serve`` as a process, with its log in a file."""

    def __init__(self, process: subprocess.Popen[str], address: str, log: Path) -> None:
        self.process, self.address, self.log = process, address, log
        self.log_text = ""  # once it has ended

    def client(self, **more: Any) -> httpx.Client:
        return httpx.Client(base_url=self.address, timeout=SECONDS, trust_env=False, **more)

    def send(self, number: int) -> None:
        os.kill(self.process.pid, number)


@contextmanager
def server(
    *runs: Path, environment: dict[str, str] | None = None, flags: Sequence[str] = (), **options: object
) -> Iterator[Server]:
    """Serve runs at a free port of this machine, until the block ends."""
    flags = [
        *flags,
        *(word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", str(value))),
    ]
    words = [*map(str, runs or (served_run(),)), "--port", "0", "--device", "cpu", *flags]
    paths = os.pathsep.join([str(Path(heterformer.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        with log.open("w") as errors:
            process = subprocess.Popen(
                [sys.executable, "-m", "heterformer", "serve", *words],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=os.environ | {"PYTHONPATH": paths, "PYTHONUNBUFFERED": "1"} | (environment or {}),
            )
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = re.search(r"http://\S+?:\d+", line)
            assert found, f"{line!r}: {log.read_text()[-2000:]}"
            running = Server(process, found[0], log)
            yield running
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            try:
                process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            assert process.stdout is not None
            process.stdout.close()
            if found:
                running.log_text = log.read_text()
