from __future__ import annotations

import pytest

from heterformer.tasks.repeated import Repeated


def test_mean_and_sample_deviation() -> None:
    found = Repeated.of([0.5, 0.7, 0.9])
    assert found.values == (0.5, 0.7, 0.9)
    assert found.mean == pytest.approx(0.7)
    assert found.deviation == pytest.approx((2 * 0.2**2 / 2) ** 0.5)


def test_one_value_has_no_deviation() -> None:
    assert Repeated.of(iter([0.5])) == Repeated((0.5,), 0.5, None)
