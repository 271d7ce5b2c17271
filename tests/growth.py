"""What a piece of work takes, counted and not timed: calls, bytes of memory, bytes read and written."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

IO = Path("/proc/self/io")
LITTLE = 2**16  # bytes that count for nothing: a module's, or a log's


@dataclass(frozen=True)
class Work:
    """What a call took."""

    calls: int  # of functions, in Python and in C
    memory: int  # bytes of Python and NumPy, at their peak
    transferred: int  # bytes read from and written to files, not through memory maps; 0 if unknown

    def __truediv__(self, other: Work) -> Work:
        """How many times as much, rounded up; a little is at least assumed."""
        return Work(
            -(-self.calls // max(1, other.calls)),
            -(-self.memory // max(LITTLE, other.memory)),
            -(-self.transferred // max(LITTLE, other.transferred)),
        )

    @property
    def most(self) -> int:
        """The largest of the three."""
        return max(self.calls, self.memory, self.transferred)


def work_of(function: Callable[[], object]) -> Work:
    """Count what a call takes."""
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    gc.collect()
    before = _transferred()
    tracemalloc.start()
    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(None)
        memory = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return Work(calls, memory, _transferred() - before)


def growth(task: Callable[[int], Callable[[], object]], small: int, large: int) -> Work:
    """How many times as much the large size takes; ``task`` prepares the work of a size.

    The first call is not counted, since it imports and fills what later ones share.
    """
    task(small)()
    works = [work_of(task(size)) for size in (small, large)]
    return works[1] / works[0]


def _transferred() -> int:
    if not IO.is_file():  # not Linux
        return 0
    counts = dict(line.split(": ") for line in IO.read_text().splitlines())
    return int(counts["rchar"]) + int(counts["wchar"])
