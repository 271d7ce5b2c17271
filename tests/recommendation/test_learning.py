"""What is learnt of a shop whose truth is planted (``heterformer.datasets.synthetic_shop``).

The margins asserted are about half of the smallest that several seeds gave (of shop, backbone and training);
``python -m tests.recommendation.test_learning SEED ...`` measures them again.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from heterformer.evaluation.core import evaluate
from heterformer.evaluation.recommendation import RecommendationResult
from heterformer.metrics import recommendation_metrics
from heterformer.network.split.split import Split
from heterformer.network.store import Network
from heterformer.recommendation.core import Recommender
from tests.shop import built_shop, shop_reader, shop_run

STEPS = 80


def learnt(folder: Path, seed: int) -> tuple[Network, Split, dict[str, RecommendationResult]]:
    """A run on a new shop, and what its test pairs say, by group."""
    network = built_shop(folder, seed=seed)
    run = shop_run(
        folder / "run",
        network,
        backbone=shop_reader(seed),
        max_steps=STEPS,
        evaluate_every=STEPS,
        seed=seed,
        textless_neighbors=8,
        **{"split.seed": seed, "split.cold": 0.1},
    )
    evaluation = evaluate(run.path, tasks=("link_prediction",), parts=("test",), device="cpu")
    return network, run.split(network), {one.group: one for one in evaluation.recommendation}


def by_text_alone(network: Network, split: Split) -> dict[str, float]:
    """The same lists by the words of what a user is known to have bought, held-out purchases left out."""
    words = TfidfVectorizer().fit_transform(network.texts("item")).toarray()
    users, items = network.edges("bought")
    known = np.zeros((network.schema.counts["user"], len(words)), dtype=bool)
    known[users, items] = True
    shown = known.copy()
    shown[tuple(split.held_out.T)] = False
    scores = shown.astype(float) @ words @ words.T
    pairs = split.test
    own = scores[pairs[:, 0], pairs[:, 1]]
    better = (scores[pairs[:, 0]] >= own[:, None]) & ~known[pairs[:, 0]]
    return recommendation_metrics(pairs[:, 0], 1 + better.sum(1))


def measured(folder: Path, seed: int) -> dict[str, float]:
    """Recall@20 by the model, by popularity and by text alone; of cold items by the model and by chance."""
    network, split, found = learnt(folder, seed)
    every, cold = found["all"], found["cold targets"]
    return {
        "model": every.metrics["recall_20"],
        "popularity": every.popularity["recall_20"],
        "text": by_text_alone(network, split)["recall_20"],
        "cold": cold.metrics["recall_20"],
        "cold by chance": 20 / cold.candidates,
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("learnt")


def test_tastes_are_learnt_and_cold_items_found_by_their_texts(folder: Path) -> None:
    recall = measured(folder, seed=0)
    assert recall["model"] > recall["popularity"] + 0.19
    assert recall["model"] > recall["text"] + 0.13
    assert recall["cold"] > recall["cold by chance"] + 0.21


def test_who_has_garden_things_is_recommended_garden_things(folder: Path) -> None:
    recommender = Recommender(folder / "run", device="cpu")
    network = recommender.network
    departments = np.array([labels[0] for labels in network.labels("item").to_list()])
    garden = [network.ids("item")[i] for i in np.flatnonzero(departments == "garden")[:4]]
    (answer,) = recommender.recommend(likes=garden, top=20, exclude_known=True)
    rows = network.rows("item", [hit.id for hit in answer.ranking.hits])
    assert (departments[rows] == "garden").mean() > 0.3  # by chance .125


if __name__ == "__main__":
    for number in map(int, sys.argv[1:]):
        with tempfile.TemporaryDirectory() as place:
            values = measured(Path(place), number)
            print("MEASURED", number, {name: round(value, 3) for name, value in values.items()}, flush=True)
