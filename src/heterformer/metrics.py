"""Metrics as plain functions of what a model got right, and figures that were measured several times."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class F1(NamedTuple):
    """Both kinds of mean."""

    micro: float
    macro: float


def f1_scores(truth: NDArray[np.bool_], predicted: NDArray[np.bool_]) -> F1:
    """F1 of predictions (n, C) for nodes whose classes are ``truth`` (n, C), one class or several each.

    With one class each, micro F1 is accuracy. A class that no node has and none is said to have says nothing
    of the classifier: it is left out of the macro mean. A class that is there and never found, or is found
    where it is not, counts as 0.
    """
    hits = (truth & predicted).sum(0)  # (C,)
    named = truth.sum(0) + predicted.sum(0)  # (C,) twice the hits, and every mistake
    met = named > 0
    if not met.any():
        raise ValueError("expected at least one class in the truth or in the predictions")
    return F1(float(2 * hits.sum() / named.sum()), float((2 * hits[met] / named[met]).mean()))


@dataclass(frozen=True)
class Repeated:
    """The values in the order of the repeats, their mean, and how far they lie apart."""

    values: tuple[float, ...]
    mean: float
    deviation: float | None
    """The sample standard deviation; one value has none."""

    @classmethod
    def of(cls, values: Iterable[float]) -> Repeated:
        values = tuple(map(float, values))
        return cls(values, fmean(values), stdev(values) if len(values) > 1 else None)
