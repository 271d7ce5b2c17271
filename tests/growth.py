"""What a piece of work takes, counted and not timed: calls, bytes of memory, of tensors, read and written.

Polars works in threads and memory of its own, of which nothing is counted but what it reads and writes.
"""

from __future__ import annotations

import gc
import sys
import threading
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

IO = Path("/proc/self/io")
LITTLE = 2**16  # bytes that count for nothing: a module's, or a log's


@dataclass(frozen=True)
class Work:
    """What a call took."""

    calls: int  # of functions, in Python and in C
    memory: int  # bytes of Python and NumPy, at their peak
    tensors: int  # bytes of all results of PyTorch's operations in this thread
    transferred: int  # bytes read from and written to files, not through memory maps; 0 if unknown

    def __truediv__(self, other: Work) -> Work:
        """How many times as much, rounded up; a little is at least assumed."""
        return Work(
            -(-self.calls // max(1, other.calls)),
            -(-self.memory // max(LITTLE, other.memory)),
            -(-self.tensors // max(LITTLE, other.tensors)),
            -(-self.transferred // max(LITTLE, other.transferred)),
        )

    @property
    def most(self) -> int:
        """The largest of the four."""
        return max(self.calls, self.memory, self.tensors, self.transferred)


class _CountedTensors(TorchDispatchMode):
    """Adds up the sizes of what operations give, views left out: they have the memory of their source."""

    bytes = 0

    def __torch_dispatch__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        results = function(*args, **(kwargs or {}))
        if not function.is_view:
            tensors = [one for one in tree_leaves(results) if isinstance(one, Tensor) and not one.is_sparse]
            self.bytes += sum(one.numel() * one.element_size() for one in tensors)
        return results


def work_of(function: Callable[[], object]) -> Work:
    """Count what a call takes."""
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    gc.collect()
    before = _transferred()
    tracemalloc.start()
    threading.setprofile(count)  # of threads to come
    sys.setprofile(count)
    tensors = _CountedTensors()
    try:
        with tensors:
            function()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
        memory = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return Work(calls, memory, tensors.bytes, _transferred() - before)


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
