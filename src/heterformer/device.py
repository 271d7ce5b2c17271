"""The device to compute on."""

from __future__ import annotations

from typing import Literal

import torch

Device = Literal["auto", "cpu"]


def chosen_device(device: Device) -> torch.device:
    """For ``auto`` a GPU if there is one, as Accelerate chooses for training; else the CPU."""
    accelerator = torch.accelerator.current_accelerator(check_available=True) if device == "auto" else None
    return accelerator or torch.device("cpu")
