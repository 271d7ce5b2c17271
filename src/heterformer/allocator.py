"""What glibc's malloc does with memory that is freed. Other C libraries are left as they are."""

from __future__ import annotations

import ctypes

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # in glibc's malloc.h
LARGE = 1 << 18  # bytes of a block that is given back as soon as it is freed
ALL = 1 << 30  # more bytes than the arrays of a step have


def keep_freed_memory() -> None:
    """Have the process keep what is freed: each step takes about as much as the one before.

    Left alone, glibc asks the system for each array over 32 MB anew, and gets it filled with zeros.
    """
    _set(M_TRIM_THRESHOLD, ALL)
    _set(M_MMAP_THRESHOLD, ALL)


def return_freed_memory(large: int = LARGE) -> None:
    """Have the process keep no more memory than it needs at the moment.

    Left alone, glibc raises the size from which freed blocks are given back to the system to that of the
    largest one, and keeps the others in the heap of the thread that asked for them. Arrays of all sizes in
    many threads then leave gaps that no later one fits.
    """
    _set(M_MMAP_THRESHOLD, large)


def _set(parameter: int, value: int) -> None:
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(parameter, value)
