from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from heterformer.evaluation import classifiers
from heterformer.evaluation.classifiers import (
    MLP,
    Examples,
    decided,
    fit_logistic_regression,
    fit_majority,
    standardised,
)
from heterformer.metrics import classification_metrics
from heterformer.training.early_stopping import EarlyStopping
from tests.evaluation.planted import clusters

SMALL = MLP(hidden=16, learning_rate=0.01, batch_size=32, patience=10, max_epochs=60)


def examples(members: list[int], **more: Any) -> tuple[Examples, Examples, Examples]:
    vectors, labels = clusters(members, **more)
    train, validation = int(0.6 * len(vectors)), int(0.8 * len(vectors))
    cuts = (slice(0, train), slice(train, validation), slice(validation, None))
    first, second, third = ((vectors[cut], labels.matrix[cut]) for cut in cuts)
    return first, second, third


def checkerboard(count: int, seed: int) -> Examples:
    """Two classes that no line divides."""
    vectors = np.random.default_rng(seed).uniform(-1, 1, (count, 2))
    return vectors, np.eye(2, dtype=bool)[(vectors.prod(1) > 0).astype(int)]


# --- Standardising and deciding --------------------------------------------------------------------------


def test_features_have_the_training_parts_mean_and_deviation() -> None:
    rng = np.random.default_rng(0)
    train, test = rng.normal(5, 3, (50, 4)), rng.normal(0, 1, (20, 4))
    scaled = standardised(train)
    reference = StandardScaler().fit(train)
    assert scaled(train).dtype == np.float32
    np.testing.assert_allclose(scaled(train), reference.transform(train), atol=1e-6)
    np.testing.assert_allclose(scaled(test), reference.transform(test), atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_feature_that_is_constant_in_training_is_not_blown_up(dtype: type) -> None:
    train = np.full((50, 2), 0.1, dtype=dtype)
    train[:, 1] = np.arange(50)
    test = np.array([[0.1, 0], [0.2, 0]], dtype=dtype)
    assert np.abs(standardised(train)(train)[:, 0]).max() < 1e-3
    assert np.abs(standardised(train)(test)[:, 0]).max() < 0.2


def test_large_vectors_stay_finite() -> None:
    train = np.random.default_rng(0).normal(0, 1e60, (50, 2))
    assert np.isfinite(standardised(train)(train)).all()
    assert standardised(train)(train).std() == pytest.approx(1, abs=1e-3)


def test_one_class_is_the_best_one() -> None:
    found = decided(np.array([[0.1, 0.3, 0.2], [-3, -2, -1], [1, 1, 0]]), multi=False)
    assert found.tolist() == [[False, True, False], [False, False, True], [True, False, False]]


def test_several_classes_are_those_above_0_or_else_the_best() -> None:
    found = decided(np.array([[0.1, 0.3, -0.2], [-3, -2, -1], [0, 0, 0]]), multi=True)
    assert found.tolist() == [[True, True, False], [False, False, True], [True, False, False]]


# --- Majority --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("classes", "multi", "answer"),
    [
        ([[1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1]], False, [0, 1, 0]),
        ([[1, 1, 0], [1, 1, 0], [1, 0, 1]], True, [1, 1, 0]),  # 3, 2 and 1 of three
        ([[1, 0, 1], [1, 1, 0], [0, 1, 0], [0, 0, 1], [0, 1, 0], [0, 0, 0]], True, [0, 1, 0]),  # at most half
    ],
)
def test_the_majority(classes: list[list[int]], multi: bool, answer: list[int]) -> None:
    train = np.zeros((len(classes), 2)), np.array(classes, dtype=bool)
    assert fit_majority(train, multi)(np.ones((2, 2))).astype(int).tolist() == [answer, answer]


# --- Logistic regression ---------------------------------------------------------------------------------


def test_logistic_regression_is_scikit_learns() -> None:
    train, _, test = examples([60, 40, 30], apart=2.0)
    scaler = StandardScaler().fit(train[0])
    reference = LogisticRegression(max_iter=1000).fit(scaler.transform(train[0]), train[1].argmax(1))
    found = fit_logistic_regression(train, multi=False)(test[0])
    assert (found.argmax(1) == reference.predict(scaler.transform(test[0]))).mean() > 0.96
    assert (found.sum(1) == 1).all()


def test_two_classes() -> None:
    train, _, test = examples([60, 40])
    assert classification_metrics(test[1], fit_logistic_regression(train, multi=False)(test[0])) == {
        "micro": 1,
        "macro": 1,
    }


def test_one_regression_for_each_of_several_classes() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(400, 5))
    classes = vectors[:, :3] > [0, 0.5, 1]
    classes[:, 0] |= ~classes.any(1)
    found = fit_logistic_regression((vectors[:300], classes[:300]), multi=True)(vectors[300:])
    assert classification_metrics(classes[300:], found)["micro"] > 0.9
    scaler = StandardScaler().fit(vectors[:300])
    one = LogisticRegression().fit(scaler.transform(vectors[:300]), classes[:300, 1])
    assert (found[:, 1] == one.predict(scaler.transform(vectors[300:]))).mean() > 0.96


@pytest.mark.filterwarnings("error")
def test_a_class_that_all_or_none_of_the_training_nodes_have() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(60, 3))
    classes = np.stack([np.ones(60, bool), np.zeros(60, bool), vectors[:, 0] > 0], axis=1)
    found = fit_logistic_regression((vectors, classes), multi=True)(vectors)
    assert (found[:, :2] == [True, False]).all()
    assert (found[:, 2] == classes[:, 2]).mean() > 0.9


# --- The MLP ---------------------------------------------------------------------------------------------


def test_the_mlp_learns_what_no_line_divides() -> None:
    train, validation, test = checkerboard(400, 0), checkerboard(100, 1), checkerboard(200, 2)
    assert classification_metrics(test[1], SMALL.fit(train, validation, False, 0)(test[0]))["micro"] > 0.9
    assert classification_metrics(test[1], fit_logistic_regression(train, False)(test[0]))["micro"] < 0.7


def test_the_mlp_learns_several_classes() -> None:
    vectors = np.random.default_rng(0).normal(size=(600, 4))
    classes = np.stack([vectors[:, 0] > 0, vectors[:, 1] > 0, vectors[:, 0] < 0.5], axis=1)
    train, validation = (vectors[:400], classes[:400]), (vectors[400:500], classes[400:500])
    found = SMALL.fit(train, validation, True, 0)(vectors[500:])
    assert classification_metrics(classes[500:], found)["micro"] > 0.95
    assert (found.sum(1) >= 2).any()


def test_the_mlp_has_one_hidden_layer() -> None:
    model = MLP(200, 0.001, 32, 10, 1)._new_model(8, 3, seed=0)
    assert [tuple(p.shape) for p in model.parameters()] == [(200, 8), (200,), (3, 200), (3,)]


def test_the_mlp_measures_features_by_the_training_part_alone() -> None:
    """A validation part a million times as large would leave nothing of the training part's features."""
    train, (vectors, classes), test = examples([60, 60])
    middle = train[0].mean(0)
    larger = middle + 1e6 * (vectors - middle)
    for seed in range(3):
        found = SMALL.fit(train, (larger, classes), False, seed)(test[0])
        assert classification_metrics(test[1], found)["micro"] > 0.9


def test_a_seed_decides_all_and_disturbs_nobody() -> None:
    train, validation, test = examples([30, 30, 30], apart=1.0)
    found = []
    for elsewhere, seed in enumerate((0, 0, 1)):
        torch.manual_seed(elsewhere)
        before = torch.random.get_rng_state()
        found.append(SMALL.fit(train, validation, False, seed)(test[0]))
        assert (torch.random.get_rng_state() == before).all()
    first, again, other = found
    assert (first == again).all()
    assert (first != other).any()


class Watched(EarlyStopping):
    """Remembers what it was told."""

    seen: list[tuple[int, float]]
    best_epoch: int

    def update(self, figure: float, step: int, counts: bool = True) -> bool:
        found = super().update(figure, step, counts)
        Watched.seen.append((step, figure))
        Watched.best_epoch = self.best_step
        return found


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> type[Watched]:
    Watched.seen = []
    monkeypatch.setattr(classifiers, "EarlyStopping", Watched)
    return Watched


def noisy(seed: int) -> Examples:
    """Mostly noise: it is soon learnt by heart."""
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(100, 10))
    return vectors, np.eye(2, dtype=bool)[(vectors[:, 0] + 2 * rng.normal(size=100) > 0).astype(int)]


def test_training_stops_by_validation_loss_and_the_best_epoch_is_kept(watched: type[Watched]) -> None:
    train, validation, (unseen, _) = noisy(0), noisy(1), noisy(2)
    patient = MLP(hidden=16, learning_rate=0.01, batch_size=32, patience=4, max_epochs=500)
    found = patient.fit(train, validation, False, 0)(unseen)
    losses = [-figure for _, figure in watched.seen]
    best = int(np.argmin(losses))
    assert len(losses) == best + 1 + 4  # four epochs in vain
    assert 0 < best < 100
    shorter = MLP(hidden=16, learning_rate=0.01, batch_size=32, patience=4, max_epochs=best + 1)
    assert (shorter.fit(train, validation, False, 0)(unseen) == found).all()
    hasty = MLP(hidden=16, learning_rate=0.01, batch_size=32, patience=500, max_epochs=best + 5)
    assert (hasty.fit(train, validation, False, 0)(unseen) == found).all()


def test_what_is_told_to_early_stopping_is_the_validation_loss(watched: type[Watched]) -> None:
    """Validation classes turned round: every epoch is worse than the one before."""
    train, (vectors, classes), _ = examples([40, 40])
    MLP(16, 0.01, 32, 3, 50).fit(train, (vectors, ~classes), False, 0)
    assert [step for step, _ in watched.seen] == [0, 1, 2, 3]
    assert (np.diff([figure for _, figure in watched.seen]) < 0).all()


def test_a_learning_rate_that_leads_nowhere_still_gives_classes() -> None:
    train, validation, (vectors, _) = examples([20, 20])
    found = MLP(16, 1e30, 32, 2, 5).fit(train, validation, False, 0)(vectors)
    assert (found.sum(1) == 1).all()


def test_the_result_is_a_matter_of_the_vectors_themselves_not_of_their_company() -> None:
    """What is fitted knows nothing of the test part: neither its mean nor its scale."""
    train, validation, (vectors, _) = examples([40, 40, 40], apart=1.5)
    for predict in (SMALL.fit(train, validation, False, 0), fit_logistic_regression(train, False)):
        together: NDArray[np.bool_] = predict(np.concatenate([vectors, 1e6 + 1e5 * vectors]))
        assert (together[: len(vectors)] == predict(vectors)).all()
