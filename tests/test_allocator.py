"""What becomes of freed memory, as glibc itself counts it."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

# Frees a large block, which raises glibc's own limit, asks for a smaller one, and then says whether the
# system was asked for it, and whether it got back what was freed: the heap's end, of more than 64 MB.
PROGRAM = """
import ctypes
from heterformer.allocator import keep_freed_memory, return_freed_memory

FIELDS = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"

class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in FIELDS.split()]

libc = ctypes.CDLL(None)
libc.mallinfo2.restype, libc.malloc.restype = Info, ctypes.c_void_p
libc.malloc.argtypes, libc.free.argtypes = [ctypes.c_size_t], [ctypes.c_void_p]
CALL
libc.free(libc.malloc(16 << 20))
before = libc.mallinfo2().hblkhd
block = libc.malloc(SIZE << 20)
mapped = libc.mallinfo2().hblkhd - before >= SIZE << 20
libc.free(block)
after = libc.mallinfo2()
print(mapped, after.hblkhd == before and after.keepcost < SIZE << 20)
"""


def mapped_and_returned(call: str, megabytes: int) -> tuple[bool, bool]:
    """Whether a block of that size is mapped by itself, and whether the system gets it back."""
    program = PROGRAM.replace("CALL", call).replace("SIZE", str(megabytes))
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    mapped, returned = (word == "True" for word in ran.stdout.split())
    return mapped, returned


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="needs glibc 2.33")
@pytest.mark.parametrize(
    ("call", "megabytes", "expected"),
    [
        ("pass", 4, (False, False)),
        ("return_freed_memory()", 4, (True, True)),
        ("pass", 100, (True, True)),
        ("keep_freed_memory()", 100, (False, False)),
    ],
)
def test_freed_memory_is_kept_or_given_back(call: str, megabytes: int, expected: tuple[bool, bool]) -> None:
    assert mapped_and_returned(call, megabytes) == expected
