"""Whether one model is better than another, or only luckier in its test queries or divisions of nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heterformer.arrays import Float64s

RESAMPLES = 10_000
DRAWN_AT_ONCE = 4_000_000  # queries: 32 MB


@dataclass(frozen=True)
class Difference:
    """The mean difference of two models over the same queries or repeats, and how sure it is."""

    mean: float
    low: float
    high: float
    p: float
    """Two-sided: how often, if the two were equal, they would differ as much."""


def paired_bootstrap(
    ours: Float64s,
    theirs: Float64s,
    resamples: int = RESAMPLES,
    seed: int = 0,
    drawn_at_once: int = DRAWN_AT_ONCE,
) -> Difference:
    """``ours - theirs`` (one value per query each, same queries), its 95 % interval and its p-value.

    Queries are drawn with replacement, the same for both models. Swapping the models changes signs alone.
    The p-value is at least 2 / (resamples + 1): a finite number of resamples cannot say more.
    """
    if ours.shape != theirs.shape or ours.ndim != 1 or not len(ours):
        raise ValueError(f"expected two values for every query, found {ours.shape} and {theirs.shape}")
    difference = ours - theirs  # (Q,)
    means = _resampled_means(difference, resamples, np.random.default_rng(seed), drawn_at_once)
    low, high = np.quantile(means, [0.025, 0.975])
    opposite = min((means <= 0).sum(), (means >= 0).sum())
    p = min(1.0, 2 * (int(opposite) + 1) / (resamples + 1))
    return Difference(float(difference.mean()), float(low), float(high), p)


def repeated_t_test(ours: Float64s, theirs: Float64s, test_to_train: float) -> Difference:
    """``ours - theirs`` (one value per repeat each, same repeats), its 95 % interval and its p-value.

    A paired t-test. Repeated divisions of the same nodes are no independent samples: their variance is
    corrected by the size of the test part for each node of the training part (Nadeau and Bengio, 2003).
    """
    from scipy.stats import t as student

    if ours.shape != theirs.shape or ours.ndim != 1 or len(ours) < 2:
        raise ValueError(f"expected two values for each of two or more repeats, found {ours.shape}")
    difference, repeats = ours - theirs, len(ours)
    mean = float(difference.mean())
    error = float(np.sqrt(difference.var(ddof=1) * (1 / repeats + test_to_train)))
    reach = float(student.ppf(0.975, repeats - 1)) * error
    p = float(2 * student.sf(abs(mean) / error, repeats - 1)) if error else float(mean == 0)
    return Difference(mean, mean - reach, mean + reach, p)


def _resampled_means(
    values: Float64s, resamples: int, rng: np.random.Generator, drawn_at_once: int
) -> Float64s:
    step = max(1, drawn_at_once // len(values))
    sizes = [min(step, resamples - start) for start in range(0, resamples, step)]
    drawn = (rng.integers(0, len(values), (size, len(values))) for size in sizes)
    return np.concatenate([values[rows].mean(1) for rows in drawn])  # (resamples,)
