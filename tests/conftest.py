"""The whole suite: one thread per worker, no network, and a processor without bf16."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
import torch

from tests.failing import Failed
from tests.processor import without_bf16

torch.set_num_threads(1)
if threading.current_thread() is threading.main_thread():  # a shell's background jobs ignore Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def terminated_as_before() -> Iterator[None]:
    """The command line takes over SIGTERM; the test run shall have it back."""
    handler = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, handler)


@pytest.fixture(autouse=True, scope="session")
def processor_without_bf16() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        without_bf16(patched)
        yield


@pytest.fixture
def failed(capsys: pytest.CaptureFixture[str]) -> Failed:
    return Failed(capsys)
