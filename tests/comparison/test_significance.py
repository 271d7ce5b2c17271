from __future__ import annotations

import numpy as np
import pytest

from heterformer.comparison.significance import RESAMPLES, paired_bootstrap


def figures(seed: int, level: float, count: int = 500) -> np.ndarray:  # type: ignore[type-arg]
    return (np.random.default_rng(seed).random(count) < level).astype(float)


def test_a_model_does_not_differ_from_itself() -> None:
    same = figures(0, 0.3)
    found = paired_bootstrap(same, same)
    assert (found.mean, found.low, found.high, found.p) == (0, 0, 0, 1)


def test_a_clear_difference() -> None:
    found = paired_bootstrap(figures(0, 0.9), figures(1, 0.1))
    assert found.mean == pytest.approx(0.8, abs=0.06)
    assert found.p == pytest.approx(2 / (RESAMPLES + 1))
    assert found.low < found.mean < found.high
    assert found.low > 0.7


def test_noise_is_taken_for_a_difference_once_in_twenty_times() -> None:
    found = [paired_bootstrap(figures(2 * i, 0.5), figures(2 * i + 1, 0.5), 500) for i in range(200)]
    assert 2 <= sum(difference.p < 0.05 for difference in found) <= 20
    assert all((difference.low <= 0 <= difference.high) == (difference.p > 0.05) for difference in found[:50])


def test_swapping_the_models_changes_the_signs_alone() -> None:
    ours, theirs = figures(2, 0.5, 100), figures(3, 0.4, 100)
    one, other = paired_bootstrap(ours, theirs), paired_bootstrap(theirs, ours)
    assert (one.mean, one.p) == (-other.mean, other.p)
    assert (one.low, one.high) == pytest.approx((-other.high, -other.low))


def test_the_interval_is_that_of_the_normal_distribution_for_many_queries() -> None:
    difference = np.random.default_rng(0).normal(0.02, 1.0, 2000)
    found = paired_bootstrap(difference, np.zeros(2000))
    error = difference.std() / np.sqrt(2000)
    assert found.low == pytest.approx(difference.mean() - 1.96 * error, abs=0.1 * error)
    assert found.high == pytest.approx(difference.mean() + 1.96 * error, abs=0.1 * error)


def test_pairing_counts() -> None:
    """A small gain on every query is sure, however much queries differ among themselves."""
    hard = np.random.default_rng(0).random(300)
    assert paired_bootstrap(hard + 0.01, hard).p < 0.001
    assert paired_bootstrap(hard + 0.01, np.random.default_rng(1).permutation(hard)).p > 0.05


def test_the_same_seed_gives_the_same_figures_whatever_fits_in_memory() -> None:
    ours, theirs = figures(2, 0.5), figures(3, 0.45)
    once = paired_bootstrap(ours, theirs)
    assert paired_bootstrap(ours, theirs, drawn_at_once=1000) == once
    assert paired_bootstrap(ours, theirs, seed=1).p != once.p


@pytest.mark.parametrize(("ours", "theirs"), [([1.0], [1.0, 0.0]), ([], [])])
def test_queries_must_be_the_same(ours: list[float], theirs: list[float]) -> None:
    with pytest.raises(ValueError, match="expected two values for every query"):
        paired_bootstrap(np.array(ours), np.array(theirs))
