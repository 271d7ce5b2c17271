from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, f1_score

from heterformer.metrics import Repeated, f1_scores

Bools = NDArray[np.bool_]


def one_hot(codes: list[int], classes: int) -> Bools:
    return np.eye(classes, dtype=bool)[codes]


def test_by_hand() -> None:
    truth, predicted = one_hot([0, 0, 0, 1, 1, 2], 3), one_hot([0, 0, 1, 1, 0, 0], 3)
    # class 0: 2 hits of 4 said and 3 true; class 1: 1 of 2 and 2; class 2: 0 of 0 and 1
    found = f1_scores(truth, predicted)
    assert found.micro == pytest.approx(3 / 6)
    assert found.macro == pytest.approx((4 / 7 + 2 / 4 + 0) / 3)


def test_by_hand_with_several_classes_each() -> None:
    truth = np.array([[1, 1, 0], [0, 1, 0], [1, 0, 0]], dtype=bool)
    predicted = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 0]], dtype=bool)
    # class 0: 1 hit of 2 and 2; class 1: 1 of 2 and 2; nobody has class 2 and nobody is said to
    found = f1_scores(truth, predicted)
    assert found.micro == pytest.approx(2 * 2 / 8)
    assert found.macro == pytest.approx((1 / 2 + 1 / 2) / 2)


def test_a_class_that_is_only_predicted_counts_as_0_and_one_that_is_nowhere_does_not_count() -> None:
    truth, predicted = one_hot([0, 0, 1, 1], 4), one_hot([0, 0, 1, 3], 4)
    assert f1_scores(truth, predicted).macro == pytest.approx((1 + 2 / 3 + 0) / 3)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("multi", [False, True])
def test_as_scikit_learn_has_it(seed: int, multi: bool) -> None:
    rng = np.random.default_rng(seed)
    count, classes = int(rng.integers(1, 30)), int(rng.integers(2, 8))  # some classes are met nowhere
    truth, predicted = (
        rng.random((count, classes)) < 0.3
        if multi
        else np.eye(classes, dtype=bool)[rng.integers(0, classes, count)]
        for _ in range(2)
    )
    truth[0, 0] = True
    found = f1_scores(truth, predicted)
    micro, macro = (
        f1_score(truth, predicted, average=mean, zero_division=np.nan) for mean in ("micro", "macro")
    )
    assert found == pytest.approx((micro, macro))


def test_micro_f1_of_one_class_each_is_accuracy() -> None:
    rng = np.random.default_rng(0)
    truth, predicted = rng.integers(0, 4, (2, 50)).tolist()
    found = f1_scores(one_hot(truth, 4), one_hot(predicted, 4))
    assert found.micro == pytest.approx(accuracy_score(truth, predicted))


def test_bounds() -> None:
    truth = one_hot([0, 1, 2, 1], 3)
    assert f1_scores(truth, truth) == (1, 1)
    assert f1_scores(truth, np.roll(truth, 1, axis=1)) == (0, 0)


def test_nothing_to_score() -> None:
    with pytest.raises(ValueError, match="expected at least one class"):
        f1_scores(np.zeros((0, 3), dtype=bool), np.zeros((0, 3), dtype=bool))


def test_mean_and_sample_deviation() -> None:
    found = Repeated.of([0.5, 0.7, 0.9])
    assert found.values == (0.5, 0.7, 0.9)
    assert found.mean == pytest.approx(0.7)
    assert found.deviation == pytest.approx((2 * 0.2**2 / 2) ** 0.5)


def test_one_value_has_no_deviation() -> None:
    assert Repeated.of(iter([0.5])) == Repeated((0.5,), 0.5, None)
