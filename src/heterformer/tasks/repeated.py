"""A figure that was measured several times."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean, stdev


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
