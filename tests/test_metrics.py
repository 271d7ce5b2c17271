from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.metrics import (
    accuracy_score,
    f1_score,
    mean_absolute_error,
    ndcg_score,
    r2_score,
    root_mean_squared_error,
)

from heterformer.metrics import (
    CLASSIFICATION_METRICS,
    CLUSTERING_METRICS,
    QUERY_ALONE_METRICS,
    RANKING_METRICS,
    REGRESSION_METRICS,
    MetricSummary,
    chance_metrics,
    chance_range,
    chance_verdict,
    classification_metrics,
    decided,
    no_better_than_chance,
    ranking_metric,
    ranking_metrics,
    recommendation_metrics,
    regression_metrics,
    watchable_metrics,
)
from tests.networks import few

Bools = NDArray[np.bool_]


def one_hot(codes: list[int], classes: int) -> Bools:
    return np.eye(classes, dtype=bool)[codes]


def test_ranking_metrics_by_hand() -> None:
    metrics = ranking_metrics(
        {"in_batch": np.array([1, 2, 4, 1]), "full": np.array([1, 2, 10, 11, 100, 101])}
    )
    assert metrics == pytest.approx(
        {
            "prec": 2 / 4,
            "mrr": (1 + 1 / 2 + 1 / 4 + 1) / 4,
            "ndcg": (1 + 1 / math.log2(3) + 1 / math.log2(5) + 1) / 4,
            "full_mrr": (1 + 1 / 2 + 1 / 10 + 1 / 11 + 1 / 100 + 1 / 101) / 6,
            "hits_1": 1 / 6,
            "hits_10": 3 / 6,
            "hits_100": 5 / 6,
        }
    )


def test_each_ranking_has_its_metrics() -> None:
    assert list(ranking_metrics({"in_batch": np.array([1])})) == ["prec", "mrr", "ndcg"]
    assert list(ranking_metrics({"full": np.array([1])})) == ["full_mrr", "hits_1", "hits_10", "hits_100"]
    assert math.isnan(ranking_metrics({"in_batch": np.empty(0, dtype=np.int64)})["mrr"])


@few
@given(st.integers(2, 30), st.integers(0, 2**32))
def test_ndcg_is_scikit_learns(size: int, seed: int) -> None:
    scores = np.random.default_rng(seed).random((size, size))
    ranks = (scores >= scores.diagonal()[:, None]).sum(1)
    assert ranking_metrics({"in_batch": ranks})["ndcg"] == pytest.approx(ndcg_score(np.eye(size), scores))


def test_names_paths_and_headings_are_unique() -> None:
    for metrics in (RANKING_METRICS, CLASSIFICATION_METRICS, CLUSTERING_METRICS):
        assert len({metric.name for metric in metrics}) == len(metrics)
        assert len({metric.heading for metric in metrics}) == len(metrics)
    assert len({metric.path for metric in RANKING_METRICS}) == len(RANKING_METRICS)


def test_metrics_import_neither_torch_nor_sklearn() -> None:
    script = "import sys, heterformer.metrics; print({'torch', 'sklearn'} & set(sys.modules))"
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert shown.stdout == "set()\n"


def test_by_hand() -> None:
    truth, predicted = one_hot([0, 0, 0, 1, 1, 2], 3), one_hot([0, 0, 1, 1, 0, 0], 3)
    # class 0: 2 hits of 4 said and 3 true; class 1: 1 of 2 and 2; class 2: 0 of 0 and 1
    found = classification_metrics(truth, predicted)
    assert found["micro"] == pytest.approx(3 / 6)
    assert found["macro"] == pytest.approx((4 / 7 + 2 / 4 + 0) / 3)


def test_by_hand_with_several_classes_each() -> None:
    truth = np.array([[1, 1, 0], [0, 1, 0], [1, 0, 0]], dtype=bool)
    predicted = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 0]], dtype=bool)
    # class 0: 1 hit of 2 and 2; class 1: 1 of 2 and 2; nobody has class 2 and nobody is said to
    found = classification_metrics(truth, predicted)
    assert found["micro"] == pytest.approx(2 * 2 / 8)
    assert found["macro"] == pytest.approx((1 / 2 + 1 / 2) / 2)


def test_a_class_that_is_only_predicted_counts_as_0_and_one_that_is_nowhere_does_not_count() -> None:
    truth, predicted = one_hot([0, 0, 1, 1], 4), one_hot([0, 0, 1, 3], 4)
    assert classification_metrics(truth, predicted)["macro"] == pytest.approx((1 + 2 / 3 + 0) / 3)


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
    found = classification_metrics(truth, predicted)
    micro, macro = (
        f1_score(truth, predicted, average=mean, zero_division=np.nan) for mean in ("micro", "macro")
    )
    assert found == pytest.approx({"micro": micro, "macro": macro})


def test_micro_f1_of_one_class_each_is_accuracy() -> None:
    rng = np.random.default_rng(0)
    truth, predicted = rng.integers(0, 4, (2, 50)).tolist()
    found = classification_metrics(one_hot(truth, 4), one_hot(predicted, 4))
    assert found["micro"] == pytest.approx(accuracy_score(truth, predicted))


def test_bounds() -> None:
    truth = one_hot([0, 1, 2, 1], 3)
    assert classification_metrics(truth, truth) == {"micro": 1, "macro": 1}
    assert classification_metrics(truth, np.roll(truth, 1, axis=1)) == {"micro": 0, "macro": 0}


def test_nothing_to_score() -> None:
    with pytest.raises(ValueError, match="expected at least one class"):
        classification_metrics(np.zeros((0, 3), dtype=bool), np.zeros((0, 3), dtype=bool))


def test_mean_and_sample_deviation() -> None:
    found = MetricSummary.from_values([0.5, 0.7, 0.9])
    assert found.values == (0.5, 0.7, 0.9)
    assert found.mean == pytest.approx(0.7)
    assert found.deviation == pytest.approx((2 * 0.2**2 / 2) ** 0.5)


def test_one_value_has_no_deviation() -> None:
    assert MetricSummary.from_values(iter([0.5])) == MetricSummary((0.5,), 0.5, None)


def test_chance_is_the_mean_over_all_ranks() -> None:
    candidates = np.array([1, 2, 4])
    assert ranking_metric("prec").chance(candidates) == pytest.approx((1 + 1 / 2 + 1 / 4) / 3)
    means = [1, (1 + 1 / 2) / 2, (1 + 1 / 2 + 1 / 3 + 1 / 4) / 4]
    assert ranking_metric("mrr").chance(candidates) == pytest.approx(sum(means) / 3)
    assert ranking_metric("hits_10").chance(np.array([5, 20])) == pytest.approx((1 + 1 / 2) / 2)
    assert math.isnan(ranking_metric("mrr").chance(np.empty(0, dtype=np.int64)))
    assert list(chance_metrics(candidates, candidates)) == [metric.name for metric in RANKING_METRICS]


def test_metrics_of_queries_read_alone_have_their_own_ranks() -> None:
    ranks = np.array([1, 2])
    found = ranking_metrics({"in_batch": ranks, "alone_in_batch": np.array([2, 2]), "alone_full": ranks})
    assert (found["prec"], found["alone_prec"], found["alone_full_mrr"]) == (0.5, 0, 0.75)
    assert [metric.name for metric in QUERY_ALONE_METRICS] == [f"alone_{m.name}" for m in RANKING_METRICS]


def test_metrics_with_links_are_those_of_the_full_ranking() -> None:
    found = ranking_metrics({"full_with_links": np.array([1, 4]), "alone_full_with_links": np.array([2, 2])})
    full = [m.name for m in RANKING_METRICS if m.ranking == "full"]
    assert list(found) == [f"{name}_with_links" for name in full] + [f"alone_{n}_with_links" for n in full]
    assert (found["full_mrr_with_links"], found["alone_full_mrr_with_links"]) == (0.625, 0.5)


def test_within_two_standard_errors_is_no_better_than_chance() -> None:
    assert no_better_than_chance(0.01, 0.01, 1000)
    assert no_better_than_chance(0.016, 0.01, 1000)  # 0.01 + 2 * 0.00315
    assert not no_better_than_chance(0.017, 0.01, 1000)
    assert not no_better_than_chance(0.016, 0.01, 10_000)
    assert chance_range(0.01, 1000) == "0.0100, with 1,000 pairs up to 0.0163"
    assert chance_verdict(0.01, 1000) == "is no better than chance (0.0100, with 1,000 pairs up to 0.0163)"


def test_of_a_few_pairs_nothing_can_be_said() -> None:
    assert no_better_than_chance(1.0, 0.5, 2)
    assert chance_verdict(0.5, 2) == "cannot be distinguished from chance (0.5000): 2 pairs are too few"


def test_recommendation_metrics_of_a_list_by_hand() -> None:
    """User 7 has relevant items at places 1 and 4 of the list, user 2 one at place 25."""
    queries, filtered = np.array([7, 2, 7]), np.array([3, 25, 1])  # ranks among what is not relevant
    found = recommendation_metrics(queries, filtered)
    assert found["recall_20"] == pytest.approx((2 / 2 + 0) / 2)
    assert found["hit_rate_10"] == pytest.approx(1 / 2)
    gain = (1 / np.log2(2) + 1 / np.log2(5)) / (1 / np.log2(2) + 1 / np.log2(3))
    assert found["ndcg_20"] == pytest.approx(gain / 2)


def test_regression_metrics_are_scikit_learns() -> None:
    rng = np.random.default_rng(0)
    truth = rng.normal(size=50) * 10 + 2000
    predicted = truth + rng.normal(size=50)
    values = regression_metrics(truth, predicted)
    assert values["r2"] == pytest.approx(r2_score(truth, predicted))
    assert values["rmse"] == pytest.approx(root_mean_squared_error(truth, predicted))
    assert values["mae"] == pytest.approx(mean_absolute_error(truth, predicted))
    assert list(values) == [metric.name for metric in REGRESSION_METRICS]


def test_what_early_stopping_can_watch_is_better_if_higher() -> None:
    """And the first is what it watches unless another one is chosen."""
    assert watchable_metrics("link_prediction") == ("prec", "mrr", "ndcg")
    assert watchable_metrics("classification") == ("macro", "micro")
    assert watchable_metrics("regression") == ("r2",)


def test_scores_decide_classes() -> None:
    scores = np.array([[1.0, 2.0, -1.0], [-3.0, -1.0, -2.0]])
    assert decided(scores, multi=False).tolist() == [[False, True, False], [False, True, False]]
    assert decided(scores, multi=True).tolist() == [[True, True, False], [False, True, False]]
