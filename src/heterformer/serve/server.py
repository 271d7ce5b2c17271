"""Where the server listens, and whether one process answers or several."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from heterformer.errors import OptionError
from heterformer.serve.logs import log_as_json
from heterformer.serve.options import ServeOptions
from heterformer.serve.workers import serve_with_workers


def serve_runs(paths: Sequence[Path | str], options: ServeOptions, started: Callable[[str], None]) -> None:
    """Serve until SIGTERM or Ctrl-C. ``started`` is called with the address once requests are answered."""
    log_as_json()
    with _listening(options) as listener:  # before the runs are opened: a taken port is known at once
        host, port = listener.getsockname()[:2]
        address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        if options.workers > 1:
            serve_with_workers(paths, options, listener, lambda: started(address))
        else:
            from heterformer.serve.process import serve_socket  # PyTorch, which a parent of workers lacks

            serve_socket(paths, options, listener, lambda: started(address))


def serve_agents(paths: Sequence[Path | str], options: ServeOptions) -> None:
    """Speak the Model Context Protocol on standard input and output until the client ends."""
    log_as_json()
    from heterformer.serve.mcp_server import serve_stdio
    from heterformer.serve.service import Service

    serve_stdio(Service(paths, options))


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
        problem = f"is {options.port}, on which it cannot listen ({error.strerror or error}); choose another."
        raise OptionError(options, "port", problem, place=f"{options.host}: ") from None
    with listener:
        yield listener
