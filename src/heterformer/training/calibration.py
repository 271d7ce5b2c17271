"""Calibration: a temperature under which predicted probabilities are what they say (Guo et al., 2017)."""

from __future__ import annotations

import numpy as np
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from heterformer.network.target_options import TargetKind

BINS = 15  # of confidence, as is usual
GRID = np.geomspace(0.05, 20, 241)  # temperatures that are tried


def best_temperature(logits: Tensor, truth: Tensor, kind: TargetKind) -> float:
    """The temperature with the lowest loss on the validation part; 1 if that is as good as any."""
    losses = [_loss(logits / temperature, truth, kind) for temperature in (1.0, *GRID)]
    return float((1.0, *GRID)[int(np.argmin(losses))])


def _loss(logits: Tensor, truth: Tensor, kind: TargetKind) -> float:
    if kind == "single":
        return F.cross_entropy(logits, truth.float().argmax(-1)).item()
    return F.binary_cross_entropy_with_logits(logits, truth.float()).item()


def calibration_error(
    probabilities: NDArray[np.floating], truth: NDArray[np.bool_], kind: TargetKind, bins: int = BINS
) -> float:
    """The expected calibration error: how far confidence is from accuracy, on average over bins of it.

    Of one class per node the confidence is that of the best class; of several, each class is a decision.
    """
    if kind == "single":
        best = probabilities.argmax(1)
        confidence, right = probabilities.max(1), truth[np.arange(len(truth)), best]
    else:
        confidence, right = probabilities.ravel(), truth.ravel()
    number = np.minimum((confidence * bins).astype(np.int64), bins - 1)
    count = np.bincount(number, minlength=bins)
    gaps = np.bincount(number, confidence, bins) - np.bincount(number, right.astype(float), bins)
    return float(np.abs(gaps).sum() / max(count.sum(), 1))
