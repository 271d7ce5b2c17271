"""Recommendation: each user's list as a plain loop makes it, cold items and cold users apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from heterformer.arrays import Ints
from heterformer.batches.visible import VisibleNetwork
from heterformer.evaluation.core import evaluate
from heterformer.evaluation.link_prediction import PairSet
from heterformer.evaluation.model_ranking import ModelVectors
from heterformer.evaluation.open_run import open_run
from heterformer.evaluation.recommendation import RecommendationResult, recommendations, whole_queries
from heterformer.evaluation.reference import popularity
from heterformer.network.split.draw import make_split
from heterformer.network.split.options import SplitOptions
from tests.shop import shop, shop_run, timed_shop


def dot(queries: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
    return queries @ keys.T


@pytest.fixture(scope="module")
def results() -> tuple[list[RecommendationResult], np.ndarray, SplitOptions]:
    options = SplitOptions(divide="pairs", cold=0.2, hold_out=0.2, train=0.5, validation=0.1)
    network, rng = shop(), np.random.default_rng(0)
    split = make_split(network, options)
    matrices = {t: torch.from_numpy(rng.normal(size=(n, 6))) for t, n in network.schema.counts.items()}

    def vectors(node_type: str, rows: Ints) -> torch.Tensor:
        return matrices[node_type][torch.from_numpy(rows)]

    (relation,) = network.schema.predicted
    visible = VisibleNetwork.for_evaluation(network, split)
    asked = [PairSet("test", relation, split.test)]
    found = recommendations(asked, vectors, visible, lambda _: dot, split.hidden)
    return found, (matrices["user"] @ matrices["item"].T).numpy(), options


def by_hand(scores: np.ndarray, pairs: np.ndarray, candidates: np.ndarray, known: np.ndarray) -> float:
    """Recall@20 by sorting each user's list."""
    recalls = []
    for user in np.unique(pairs[:, 0]):
        relevant = set(pairs[pairs[:, 0] == user, 1].tolist())
        others = [i for i in candidates if i in relevant or not known[user, i]]
        first = sorted(others, key=lambda item: -scores[user, item])[:20]
        recalls.append(len(relevant & set(first)) / len(relevant))
    return float(np.mean(recalls))


def test_the_figures_are_those_of_a_plain_loop(
    results: tuple[list[RecommendationResult], np.ndarray, SplitOptions],
) -> None:
    found, scores, options = results
    network = shop()
    split = make_split(network, options)
    known = np.zeros(scores.shape, dtype=bool)
    known[network.edges("bought")] = True
    shown = known.copy()
    shown[tuple(split.held_out.T)] = False
    cold = np.flatnonzero(~shown.any(0))
    every = np.arange(scores.shape[1])
    of_cold = np.isin(split.test[:, 1], cold)
    new = np.isin(split.test[:, 0], split.hidden["user"])
    expected = {
        "all": by_hand(scores, split.test, every, known),
        "cold targets": by_hand(scores, split.test[of_cold], cold, known),
        "cold queries": by_hand(scores, split.test[new], every, known),
    }
    assert [one.group for one in found] == list(expected)
    for one in found:
        assert one.metrics["recall_20"] == pytest.approx(expected[one.group]), one.group
    assert found[1].candidates == len(cold)
    assert found[0].pairs == len(split.test)
    assert RecommendationResult.from_json(found[1].to_json()) == found[1]


def test_between_texts_there_are_no_lists() -> None:
    """Of a relation without a textless end nothing is reported: it has link prediction."""
    visible = VisibleNetwork.whole(shop())
    assert recommendations([], lambda t, rows: torch.zeros(len(rows), 2), visible, lambda _: dot, {}) == []


def test_users_are_asked_for_with_all_their_pairs() -> None:
    pairs = np.array([[3, 0], [1, 0], [3, 1], [2, 5], [1, 4], [3, 2]])
    assert whole_queries(pairs, 10)[:, 0].tolist() == [3, 3, 3, 1, 1, 2]
    assert whole_queries(pairs, 4)[:, 0].tolist() == [3, 3, 3]
    assert whole_queries(pairs, 5)[:, 0].tolist() == [3, 3, 3, 1, 1]
    assert whole_queries(pairs, 1)[:, 0].tolist() == [3, 3, 3]  # one at least


@pytest.fixture(scope="module")
def timed_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    by_time = {"split.by": "time", "split.divide": "queries", "textless_neighbors": 3, "max_steps": 2}
    return shop_run(tmp_path_factory.mktemp("timed") / "run", timed_shop(), **by_time).path


def ranked_as_of(run: Path, monkeypatch: pytest.MonkeyPatch, **options: Any) -> dict[str, VisibleNetwork]:
    """What each part of the predicted relation is ranked with."""
    ranked: dict[str, VisibleNetwork] = {}

    def recorded(self: ModelVectors, pair_sets: list[PairSet], *arguments: Any, **more: Any) -> Any:
        ranked.update({one.part: self.batcher.visible for one in pair_sets if one.relation.name == "bought"})
        return rank(self, pair_sets, *arguments, **more)

    rank = ModelVectors.rank
    monkeypatch.setattr(ModelVectors, "rank", recorded)
    evaluate(run, tasks=("link_prediction",), device="cpu", **options)
    return ranked


def test_each_part_of_a_split_by_time_is_ranked_as_of_its_beginning(
    timed_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Vectors of the test would show to a validation pair what came after it."""
    ranked = ranked_as_of(timed_run, monkeypatch)
    found = evaluate(timed_run, tasks=("link_prediction",), device="cpu")
    times = open_run(timed_run, "cpu").split.times
    assert times is not None
    as_of = {part: visible.as_of for part, visible in ranked.items()}
    assert as_of == {"validation": times.train_until, "test": times.validation_until}
    assert times.train_until < times.validation_until
    assert [one.part for one in found.link_prediction if one.relation == "bought"] == ["validation", "test"]
    assert {one.part for one in found.recommendation} == {"validation", "test"}


@pytest.mark.parametrize("earliest", [4, 35])
def test_new_pairs_of_a_grown_network_are_ranked_as_of_the_first_of_them(
    earliest: int, timed_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether they are later than the test, as is usual, or were only found out later."""
    purchases = [("new-1", "item-1", 35), ("new-1", "item-2", 36), ("new-2", "item-3", earliest)]
    grown = timed_shop((*purchases, ("user-1", "item-4", 37)))
    ranked = ranked_as_of(timed_run, monkeypatch, network=grown.path)
    opened = open_run(timed_run, "cpu", grown.path)
    times, new = opened.split.times, opened.split.first.new
    assert times is not None
    assert grown.ids("user", new[:, 0]) == ["new-1", "new-2"]
    assert ranked["test"].as_of == times.validation_until
    assert ranked["new"].as_of == min(earliest, times.validation_until)
    users = grown.rows("user", ["new-1", "user-1"])
    shown = ranked["new"].shown("user", "item")
    adjacency = grown.adjacency("user", "item")
    assert adjacency.time is not None
    for user in users:
        own = slice(adjacency.indptr[user], adjacency.indptr[user + 1])
        limit = max(min(earliest, times.validation_until), adjacency.time[own].min())
        assert (adjacency.time[own][shown[own]] <= limit).all()
        assert (adjacency.time[own] > limit).any()


def test_users_without_a_purchase_before_the_test_are_cold(tmp_path: Path) -> None:
    """A split by time hides no user by name: there are those of whom training has no link."""
    late = [("late-1", "item-1", 40), ("late-1", "item-2", 41), ("late-2", "item-3", 42)]
    network = timed_shop(tuple(late))
    by_time = {"split.by": "time", "split.divide": "pairs", "textless_neighbors": 3, "max_steps": 1}
    run = shop_run(tmp_path / "run", network, **by_time)
    found = evaluate(run.path, tasks=("link_prediction",), device="cpu", parts=("test",))
    by_group = {one.group: one for one in found.recommendation}
    assert (by_group["cold queries"].queries, by_group["cold queries"].pairs) == (2, 3)
    assert by_group["all"].queries > 2


def test_later_purchases_make_an_item_neither_popular_nor_warm(timed_run: Path) -> None:
    opened = open_run(timed_run, "cpu")
    times, bought = timed_shop().edge_values("bought", "time"), timed_shop().edges("bought")[1]
    assert times is not None
    relation, visible = timed_shop().schema.predicted[0], opened.batcher.visible
    first = np.full(160, np.inf)
    np.minimum.at(first, bought, times)
    counts = np.floor(popularity(visible, relation).numpy())
    assert opened.split.times is not None
    limit = np.maximum(first, opened.split.times.validation_until)
    earlier = np.bincount(bought[times <= limit[bought]], minlength=160)
    assert (counts <= earlier).all()
    assert (counts < np.bincount(bought, minlength=160)).any()
