"""Rounded numbers of rows, for matrix products in half precision on the CPU.

oneDNN prepares each product anew for every number of rows, which takes about as long as a small product.
Rounded numbers occur again, from step to step.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

COARSE = 2  # these products are small: half as many rows again cost less than preparing one


def rounding_pays(rows: Tensor) -> bool:
    """Whether products of these rows are in half precision on the CPU."""
    return rows.device.type == "cpu" and torch.is_autocast_enabled("cpu")


def rounded_up(rows: int, share: int = 8) -> int:
    """The next of numbers that lie at most an eighth apart, or another such power of two."""
    step = max(8, (1 << max(rows - 1, 0).bit_length()) // (2 * share))
    return next_multiple(rows, step)


def next_multiple(number: int, factor: int) -> int:
    """The smallest multiple of ``factor`` that is not below ``number``."""
    return -(-number // factor) * factor


def project(linear: nn.Linear, states: Tensor) -> Tensor:
    """``linear(states)``, (…, d) of any number of rows, on a rounded number of them where that pays."""
    count = states.shape[:-1].numel()
    if not count or not rounding_pays(states):
        return linear(states)  # type: ignore[no-any-return]
    rows = F.pad(states.reshape(count, -1), (0, 0, 0, rounded_up(count, COARSE) - count))
    projected: Tensor = linear(rows)
    return projected[:count].view(*states.shape[:-1], -1)
