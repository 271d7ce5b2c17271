"""The process that serves: it opens the runs, answers, reloads on SIGHUP and ends in order on SIGTERM."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI

from heterformer.allocator import return_freed_memory
from heterformer.progress import messages_to
from heterformer.serve.app import make_app
from heterformer.serve.errors import RequestError
from heterformer.serve.logs import LOGGER, log_as_json
from heterformer.serve.metrics import Metrics
from heterformer.serve.options import ServeOptions
from heterformer.serve.service import Service

BACKLOG = 1024  # connections that wait to be taken
SHAPES = 64  # of operations that stay compiled: those of a few batches


def serve_socket(
    paths: Sequence[Path | str],
    options: ServeOptions,
    listener: socket.socket,
    started: Callable[[], None],
    reloaded: Callable[[], None] = lambda: None,
) -> None:
    """Serve at a socket in this process. ``reloaded`` is called after a client had the runs opened anew."""
    log_as_json()
    keep_memory_flat()
    with messages_to(LOGGER.info):
        _serve(paths, options, listener, started, reloaded)


def keep_memory_flat() -> None:
    """Have the process keep no more memory than requests under way need. Called before torch computes.

    oneDNN keeps what it has compiled for each of a thousand shapes; every batch of texts has new ones.
    """
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", str(SHAPES))
    return_freed_memory()


def _serve(
    paths: Sequence[Path | str],
    options: ServeOptions,
    listener: socket.socket,
    started: Callable[[], None],
    reloaded: Callable[[], None],
) -> None:
    metrics = Metrics()
    with _hangups(metrics) as opened:
        service = Service(paths, options, metrics.observe_batch)
        opened(service)
        _run(service, metrics, listener, started, reloaded)


def _run(
    service: Service,
    metrics: Metrics,
    listener: socket.socket,
    started: Callable[[], None],
    reloaded: Callable[[], None],
) -> None:
    app = make_app(service, metrics, lambda: server.should_exit, reloaded)
    server = _Server(uvicorn_config(app, service.options))
    listener.listen(BACKLOG)  # whoever has read the address can connect
    LOGGER.info("ready", extra={"fields": {"runs": list(service.names), "process": os.getpid()}})
    started()
    try:
        with _ending():
            server.run(sockets=[listener])
    finally:
        service.close()


def uvicorn_config(app: FastAPI, options: ServeOptions) -> uvicorn.Config:
    """How uvicorn serves an app."""
    return uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=options.ending,
        h11_max_incomplete_event_size=64 * 1024,
        backlog=1,
    )


class _Server(uvicorn.Server):
    """Takes one connection at a time. asyncio would take all that wait, and other workers get none."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listener in sockets or []:
            listener.listen(BACKLOG)  # asyncio has one number for how many wait and how many are taken


@contextmanager
def _hangups(metrics: Metrics) -> Iterator[Callable[[Service], None]]:
    """SIGHUP opens the runs anew in a thread.

    One that comes before they are opened, or while they are opened anew, is answered after that: what was
    read until then may be older.
    """
    reload_requested = threading.Event()

    def reload(service: Service) -> None:
        while reload_requested.wait():
            reload_requested.clear()
            try:
                LOGGER.info("reloaded", extra={"fields": service.reload(wait=True)})
                metrics.reloads.labels("done").inc()
            except (RequestError, OSError) as error:
                LOGGER.error("not reloaded: %s", error)
                metrics.reloads.labels("failed").inc()

    def opened(service: Service) -> None:
        threading.Thread(target=reload, args=(service,), name="reload", daemon=True).start()

    with _handling({signal.SIGHUP: lambda *_: reload_requested.set()}):
        yield opened


def _ending() -> AbstractContextManager[None]:
    """Uvicorn takes SIGTERM and Ctrl-C; both are an orderly end."""

    def nothing(*_: Any) -> None:
        """Uvicorn sends itself the signal again once it has ended."""

    return _handling({signal.SIGTERM: nothing, signal.SIGINT: nothing})


@contextmanager
def _handling(handlers: Mapping[signal.Signals, Callable[..., None]]) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
