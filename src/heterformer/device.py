"""The device to compute on, whether it has bf16, and the precision that follows."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

import torch

from heterformer.precision import ComputedPrecision, Precision, TrainingPrecision, current_precision
from heterformer.progress import say

Device = Literal["auto", "cpu"]
CPU_INFO = Path("/proc/cpuinfo")
# oneDNN and PyTorch keep what they have prepared for each shape of a bf16 product: about a megabyte, for up
# to 1,024 shapes. Those of texts are rounded up and occur again (``models/plm/packing.py``), those of edges
# do not. Both read these variables at the first product; one that is set already stays.
CACHED_SHAPES = {"LRU_CACHE_CAPACITY": "128", "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "128"}
BF16_FLAGS = {"avx512_bf16", "amx_bf16", "bf16"}  # the last one is ARM's

for _name, _capacity in CACHED_SHAPES.items():
    os.environ.setdefault(_name, _capacity)


def chosen_device(device: Device) -> torch.device:
    """For ``auto`` a GPU if there is one, as Accelerate chooses for training; else the CPU."""
    accelerator = torch.accelerator.current_accelerator(check_available=True) if device == "auto" else None
    return accelerator or torch.device("cpu")


def has_bf16(device: torch.device, cpu_info: Path = CPU_INFO) -> bool:
    """Whether the device has instructions for bf16. Without them PyTorch emulates it, which is slow."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device.type != "cpu":
        return True
    try:
        words = cpu_info.read_text(encoding="utf-8", errors="replace").split()
    except OSError:  # not Linux
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    return not BF16_FLAGS.isdisjoint(words)


def chosen_precision(precision: Precision, device: torch.device) -> ComputedPrecision:
    """Of vectors: for ``auto`` bf16 if the device has it, else float32."""
    if precision != "auto":
        return precision
    return "bf16" if has_bf16(device) else "float32"


def chosen_training_precision(precision: TrainingPrecision, device: torch.device) -> TrainingPrecision:
    """For ``auto`` bf16 if the device has it, else fp16 on a GPU and float32 on a CPU."""
    if precision != "auto":
        named: TrainingPrecision = current_precision(precision)
        return named
    if has_bf16(device):
        return "bf16"
    return "fp16" if device.type == "cuda" else "float32"


def computing_in(precision: TrainingPrecision, device: torch.device) -> torch.autocast:
    """A context in which matrix products are computed in a precision, which is no longer ``auto``."""
    half = torch.float16 if precision == "fp16" else torch.bfloat16
    return torch.autocast(device.type, half, enabled=precision != "float32")


def say_if_slow(precision: str, device: torch.device) -> None:
    """Tell that a precision is slow on a device that has no instructions for it."""
    if precision == "fp16" and device.type == "cpu":
        say("precision is fp16, which is for GPUs: on this CPU it is slower than float32.")
    if precision == "bf16" and not has_bf16(device):
        what = "this GPU" if device.type == "cuda" else "this CPU"
        say(f"precision is bf16, for which {what} has no instructions: it is many times slower than float32.")
