"""The process that serves: it opens the runs, listens, reloads on SIGHUP and ends in order on SIGTERM."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn

from heterformer.errors import OptionError
from heterformer.serve.app import make_app
from heterformer.serve.errors import RequestError
from heterformer.serve.logs import LOGGER, log_as_json
from heterformer.serve.metrics import Metrics
from heterformer.serve.options import ServeOptions
from heterformer.serve.service import Service

BACKLOG = 1024  # connections that wait to be taken
ENDING = 30  # seconds that requests under way have after SIGTERM


def serve_runs(paths: Sequence[Path | str], options: ServeOptions, started: Callable[[str], None]) -> None:
    """Serve until SIGTERM or Ctrl-C. ``started`` is called with the address once it listens."""
    log_as_json()
    metrics = Metrics()
    with _listening(options) as listener:  # before the runs are opened: a taken port is known at once
        service = Service(paths, options, metrics.observe_batch)
        config = uvicorn.Config(
            make_app(service, metrics, lambda: server.should_exit),
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=5,
            timeout_graceful_shutdown=ENDING,
            h11_max_incomplete_event_size=64 * 1024,
        )
        server = uvicorn.Server(config)
        listener.listen(BACKLOG)  # whoever has read the address can connect
        host, port = listener.getsockname()[:2]
        started(f"http://{f'[{host}]' if ':' in host else host}:{port}")
        try:
            with _signals(service, metrics):
                server.run(sockets=[listener])
        finally:
            service.close()


@contextmanager
def _listening(options: ServeOptions) -> Iterator[socket.socket]:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            options.host, options.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        problem = (
            f"is {options.port}, which cannot be listened at ({error.strerror or error}); choose another."
        )
        raise OptionError(options, "port", problem, place=f"{options.host}: ") from None
    with listener:
        yield listener


@contextmanager
def _signals(service: Service, metrics: Metrics) -> Iterator[None]:
    """SIGHUP opens the runs anew in a thread. Uvicorn takes SIGTERM and Ctrl-C; both are an orderly end."""

    def reload() -> None:
        try:
            LOGGER.info("reloaded", extra={"fields": service.reload()})
            metrics.reloads.labels("done").inc()
        except (RequestError, OSError) as error:
            LOGGER.error("not reloaded: %s", error)
            metrics.reloads.labels("failed").inc()

    def on_hangup(*_: Any) -> None:
        threading.Thread(target=reload, name="reload", daemon=True).start()

    def nothing(*_: Any) -> None:
        """Uvicorn sends itself the signal again once it has ended."""

    handlers = {signal.SIGHUP: on_hangup, signal.SIGTERM: nothing, signal.SIGINT: nothing}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
