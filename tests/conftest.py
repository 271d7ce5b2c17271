"""The whole suite: one thread per worker, and no network."""

from __future__ import annotations

import os
import signal
import threading

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

torch.set_num_threads(1)
if threading.current_thread() is threading.main_thread():  # a shell's background jobs ignore Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)
