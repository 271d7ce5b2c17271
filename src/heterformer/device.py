"""Where to compute."""

from __future__ import annotations

from typing import Literal

import torch

Device = Literal["auto", "cpu"]


def chosen_device(device: Device) -> torch.device:
    """A GPU if there is one and ``auto`` was chosen, as Accelerate does for training; else the CPU."""
    found = torch.accelerator.current_accelerator(check_available=True) if device == "auto" else None
    return found or torch.device("cpu")
