"""The memory of the process at hand. It imports nothing large, which would be measured too."""

from __future__ import annotations

from pathlib import Path


def peak_bytes() -> int:
    """The largest resident size so far. Not ru_maxrss, which begins with what the parent process had."""
    status = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
