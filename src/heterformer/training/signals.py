"""Signals that let a step end before training stops."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interruptible(alone: bool) -> Iterator[list[int]]:
    """The first Ctrl-C lets the step end (the list is then not empty); a second one interrupts at once.

    Of several processes, each gets the signal of the terminal and then that of its launcher, which kills
    those that take too long: only for a process ``alone`` is the second one the user's impatience.
    """
    received: list[int] = []

    def receive(number: int, _: FrameType | None) -> None:
        if received and alone:
            raise KeyboardInterrupt
        received.append(number)

    if threading.current_thread() is not threading.main_thread():
        yield received
        return
    previous = {number: signal.signal(number, receive) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
