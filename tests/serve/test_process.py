"""The process that serves."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest
from fastapi import FastAPI

from heterformer.serve.options import ServeOptions
from heterformer.serve.process import uvicorn_config

# Frees a large block, which raises glibc's own limit, and then asks how much is mapped beside the heaps.
PROGRAM = """
import ctypes
from heterformer.serve.process import keep_memory_flat

FIELDS = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"

class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in FIELDS.split()]

libc = ctypes.CDLL(None)
libc.mallinfo2.restype, libc.malloc.restype = Info, ctypes.c_void_p
libc.malloc.argtypes, libc.free.argtypes = [ctypes.c_size_t], [ctypes.c_void_p]
CALL
libc.free(libc.malloc(16 << 20))
before = libc.mallinfo2().hblkhd
block = libc.malloc(4 << 20)
inside = libc.mallinfo2().hblkhd
libc.free(block)
print(inside - before >= 4 << 20, libc.mallinfo2().hblkhd == before)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="needs glibc 2.33")
@pytest.mark.parametrize("call", ["keep_memory_flat()", "pass"])
def test_large_blocks_are_given_back_to_the_system_when_they_are_freed(call: str) -> None:
    program = PROGRAM.replace("CALL", call)
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == [str(call != "pass"), "True"]


@pytest.mark.parametrize("timeout", [0.5, 30, 600])
def test_a_request_under_way_keeps_its_time_when_the_server_ends(timeout: float) -> None:
    options = ServeOptions(timeout=timeout)
    assert uvicorn_config(FastAPI(), options).timeout_graceful_shutdown == options.ending > timeout
