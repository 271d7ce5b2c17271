"""Several processes that listen at one socket, and the one that watches over them.

Each worker opens the runs by itself; vectors, network and indexes are files that all of them map, so that
they are in memory once. The parent opens nothing: it replaces workers that ended, and hands on signals.

A worker reads its orders from standard input, as one line of JSON: there the key is out of sight. The pipe
stays open as long as the parent lives, so that no worker outlives it. It answers on another pipe, line by
line: ready, reloaded, or failed with a sentence.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from prometheus_client import multiprocess

from heterformer.errors import InputError
from heterformer.progress import quiet_transformers
from heterformer.serve.logs import LOGGER
from heterformer.serve.metrics import SHARED
from heterformer.serve.options import ServeOptions

LOOK = 0.2  # seconds between two looks at the workers
CLOSING = 5  # seconds that a worker has to end after its requests
FAILURES = 3  # starts in a row that may end before a worker is ready


@dataclass
class Worker:
    """One process, and the pipe that tells it whether we live."""

    process: subprocess.Popen[str]
    answers: IO[str]
    is_ready: bool = False
    is_outdated: bool = False  # a reload was asked for while it started


class Workers:
    """Starts workers and keeps their number.

    Args:
        paths: The runs.
        options: What each of them serves with.
        listener: The socket that all of them listen at.
        metrics: A folder for their counters.
    """

    def __init__(
        self, paths: Sequence[Path | str], options: ServeOptions, listener: socket.socket, metrics: Path
    ) -> None:
        self.options, self.listener, self.metrics = options, listener, metrics
        self._paths = [str(path) for path in paths]
        self._workers: list[Worker] = []
        self._changed = threading.Event()
        self._failures = 0
        self.error = ""

    def run(self, started: Callable[[], None], stopping: Callable[[], bool]) -> None:
        """Keep all of them running until ``stopping``; ``started`` is called once the first one is ready."""
        self._workers = [self._start() for _ in range(self.options.workers)]
        is_started = False
        try:
            while not (stopping() or self.error):
                self._changed.wait(LOOK)
                self._changed.clear()
                if not is_started and any(worker.is_ready for worker in self._workers):
                    is_started = True
                    started()
                self._replace()
        finally:
            self._end()
        if self.error:
            raise InputError(self.error)

    @property
    def ending(self) -> int:
        """Seconds that workers have to end."""
        return self.options.ending + CLOSING

    def send(self, number: int) -> None:
        """Send a signal to all workers."""
        for worker in self._workers:
            if worker.process.poll() is None:
                worker.process.send_signal(number)

    def reload(self, besides: int = 0) -> None:
        """Have all workers but the process ``besides`` open the runs anew.

        A worker that is starting gets the signal once it is ready: before, it may have read some files
        already, and the signal would end it.
        """
        for worker in self._workers:
            if worker.process.pid == besides:
                continue
            worker.is_outdated = True
            self._reload_if_ready(worker)

    def _reload_if_ready(self, worker: Worker) -> None:
        if worker.is_ready and worker.is_outdated and worker.process.poll() is None:
            worker.is_outdated = False
            worker.process.send_signal(signal.SIGHUP)

    def _start(self) -> Worker:
        read_end, write_end = os.pipe()
        descriptors = (self.listener.fileno(), write_end)
        threads = max(1, (os.cpu_count() or 1) // self.options.workers)
        environment = {"OMP_NUM_THREADS": str(threads)} | os.environ | {SHARED: str(self.metrics)}
        process = subprocess.Popen(
            [sys.executable, "-m", "heterformer.serve.workers"],
            stdin=subprocess.PIPE,
            pass_fds=descriptors,
            env=environment,
            start_new_session=True,  # Ctrl-C is for the parent, which ends them in order
            text=True,
        )
        os.close(write_end)
        options = asdict(self.options) | {"api_key": self.options.key}
        orders = {"paths": self._paths, "options": options, "descriptors": descriptors}
        assert process.stdin is not None
        process.stdin.write(json.dumps(orders) + "\n")
        process.stdin.flush()
        worker = Worker(process, os.fdopen(read_end, encoding="utf-8"))
        threading.Thread(target=self._listen, args=(worker,), daemon=True).start()
        return worker

    def _listen(self, worker: Worker) -> None:
        """What a worker says of itself."""
        for line in worker.answers:
            word, _, sentence = line.rstrip("\n").partition(" ")
            if word == "ready":
                worker.is_ready, self._failures = True, 0
                self._reload_if_ready(worker)
            elif word == "reloaded":
                self.reload(besides=worker.process.pid)
            elif word == "failed":
                self.error = sentence
            self._changed.set()

    def _replace(self) -> None:
        for place, worker in enumerate(self._workers):
            status = worker.process.poll()
            if status is None or self.error:
                continue
            fields = {"worker": worker.process.pid, "status": status}
            LOGGER.warning("a worker ended and is replaced", extra={"fields": fields})
            self._forget(worker)
            self._failures += not worker.is_ready
            if self._failures >= FAILURES:
                self.error = f"workers end with status {status} before they are ready; the log has more."
                return
            self._workers[place] = self._start()

    def _forget(self, worker: Worker) -> None:
        multiprocess.mark_process_dead(worker.process.pid, str(self.metrics))  # type: ignore[no-untyped-call]
        assert worker.process.stdin is not None
        worker.process.stdin.close()

    def _end(self) -> None:
        self.send(signal.SIGTERM)
        end = time.monotonic() + self.ending
        for worker in self._workers:
            try:
                worker.process.wait(max(0.1, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                worker.process.kill()
                worker.process.wait()
            assert worker.process.stdin is not None
            worker.process.stdin.close()


def serve_with_workers(
    paths: Sequence[Path | str],
    options: ServeOptions,
    listener: socket.socket,
    started: Callable[[], None],
) -> None:
    """Serve by several processes until SIGTERM or Ctrl-C."""
    ended = threading.Event()
    with ExitStack() as stack:
        metrics = stack.enter_context(tempfile.TemporaryDirectory(prefix="heterformer-metrics-"))
        workers = Workers(paths, options, listener, Path(metrics))
        stack.enter_context(_signals(ended, workers))
        workers.run(started, ended.is_set)


@contextmanager
def _signals(ended: threading.Event, workers: Workers) -> Iterator[None]:
    def on_end(*_: Any) -> None:
        ended.set()

    def on_hangup(*_: Any) -> None:
        workers.reload()

    handlers = {signal.SIGTERM: on_end, signal.SIGINT: on_end, signal.SIGHUP: on_hangup}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def work(orders: dict[str, Any]) -> int:
    """Be a worker: what ``Workers`` starts. The exit status."""
    listening, answering = orders["descriptors"]
    options = ServeOptions(**orders["options"])
    with os.fdopen(answering, "w", encoding="utf-8") as answers:

        def say(line: str) -> None:
            answers.write(line.replace("\n", " ") + "\n")
            answers.flush()

        threading.Thread(target=_end_with_parent, daemon=True).start()
        from heterformer.serve.process import serve_socket

        quiet_transformers()
        try:
            with socket.socket(fileno=listening) as listener:
                serve_socket(
                    orders["paths"], options, listener, lambda: say("ready"), lambda: say("reloaded")
                )
        except InputError as error:
            say(f"failed {error}")
            return 1
    return 0


def _end_with_parent() -> None:
    """End in order once standard input ends, which it does when the parent does."""
    while sys.stdin.read(1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(work(json.loads(sys.stdin.readline())))
