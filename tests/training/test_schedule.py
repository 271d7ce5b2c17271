from __future__ import annotations

from itertools import pairwise

import pytest

from heterformer.training.schedule import Schedule, rate_factor


def factors(schedule: Schedule, total: int = 100, warm_up: float = 0.1) -> list[float]:
    return [rate_factor(schedule, step, total, warm_up) for step in range(total + 1)]


def test_a_constant_schedule_changes_nothing() -> None:
    assert set(factors("constant")) == {1.0}


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
def test_rates_rise_linearly_and_fall_to_zero(schedule: Schedule) -> None:
    found = factors(schedule)
    assert found[:10] == pytest.approx([0.1 * n for n in range(1, 11)])
    assert found[10] == 1.0
    assert all(later < earlier for earlier, later in pairwise(found[10:]))
    assert found[100] == pytest.approx(0)
    assert found[55] == pytest.approx(0.5)


def test_a_cosine_falls_late_and_a_line_evenly() -> None:
    assert factors("linear")[32] == pytest.approx(1 - 22 / 90)
    assert factors("cosine")[32] > factors("linear")[32]


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
def test_without_a_warm_up_the_first_step_has_the_full_rate(schedule: Schedule) -> None:
    assert factors(schedule, total=10, warm_up=0.0)[0] == 1.0
    assert rate_factor(schedule, 500, 10, 0.0) == pytest.approx(0)  # a run that was extended and cut again
