"""The command's entry point, which imports little: an interrupt while modules load ends it as any other."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from typing import Any


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command, that of the process unless ``arguments`` are given."""
    before = {number: signal.signal(number, _end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        from heterformer.cli import application
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    application.run(arguments)


def _end(*_: Any) -> None:
    """Nothing is open or half-written yet, and an exception would pass through whatever is being imported."""
    os.write(2, b"interrupted\n")
    os._exit(130)
