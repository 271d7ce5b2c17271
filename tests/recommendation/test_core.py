"""Recommendation: the other end of the predicted relation, by inner product, for users old and new."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from heterformer.datasets.synthetic_shop import ShopOptions, write_shop
from heterformer.embedding.embed import embed
from heterformer.errors import InputError
from heterformer.network.build import build_network
from heterformer.network.spec import NetworkSpec
from heterformer.recommendation.core import Recommendations, Recommender, recommend_run
from heterformer.recommendation.options import RecommendOptions
from heterformer.training.run import Run
from tests.shop import shop, trained_shop

BOTH = "[bought, made_by]"


@pytest.fixture(scope="module")
def recommender() -> Recommender:
    return Recommender(trained_shop(), device="cpu")


def ids(answer: Recommendations) -> list[str]:
    return [hit.id for hit in answer.ranking.hits]


def test_items_are_ranked_by_inner_product(recommender: Recommender) -> None:
    network = shop()
    vectors = embed(Run(trained_shop()).model(), network)
    first, second = recommender.recommend(["user-3", "user-7"], top=160)
    assert (first.relation, first.ranking.node_type) == ("bought", "item")
    assert first.user is not None
    assert (first.user.node_type, first.user.id) == ("user", "user-3")
    row = network.rows("user", ["user-3"])[0]
    scores = vectors["item"] @ vectors["user"][row]
    assert ids(first) == [network.ids("item")[i] for i in np.argsort(-scores, kind="stable")]
    assert ids(first) != ids(second)


def test_links_count_as_far_as_training_has_not_corrected_for_them(recommender: Recommender) -> None:
    (by_default,) = recommender.recommend("user-3", top=160)
    (close,) = recommender.recommend("user-3", top=160, link_weight=0)
    assert ids(by_default) == ids(close)  # between users and items training corrects for popularity
    (likely,) = recommender.recommend("user-3", top=160, link_weight=2)
    scores = {hit.id: hit.score for hit in close.ranking.hits}
    bought = np.bincount(shop().edges("bought")[1], minlength=shop().schema.counts["item"])
    added = 2 * Run(trained_shop()).model().config.temperature * np.log(1 + bought)
    expected = {i: scores[i] + more for i, more in zip(shop().ids("item"), added, strict=True)}
    assert {hit.id: hit.score for hit in likely.ranking.hits} == pytest.approx(expected, rel=1e-4)
    assert ids(likely) != ids(close)
    with pytest.raises(InputError, match=r"link_weight is -1, expected a number from 0 to 10\."):
        recommender.recommend("user-3", link_weight=-1)


def test_what_a_user_has_is_marked_and_can_be_left_out(recommender: Recommender) -> None:
    network = shop()
    row = network.rows("user", ["user-3"])[0]
    sources, targets = network.edges("bought")
    bought = {network.ids("item")[i] for i in targets[sources == row]}
    (every,) = recommender.recommend("user-3", top=160)
    assert {hit.id for hit in every.ranking.hits if hit.known} == bought
    (new,) = recommender.recommend("user-3", top=160, exclude_known=True)
    assert ids(new) == [i for i in ids(every) if i not in bought]


def test_a_filter_and_the_other_direction(recommender: Recommender) -> None:
    (few,) = recommender.recommend("user-3", where="label == 'music'", top=5)
    assert few.ranking.candidates == 20
    (users,) = recommender.recommend("item-3", type="user", top=3)  # to whom might it be sold
    assert users.ranking.node_type == "user"
    assert users.user is not None
    assert users.user.id == "item-3"


def test_a_newcomer_is_what_they_have(recommender: Recommender) -> None:
    network = shop()
    departments = [labels[0] for labels in network.labels("item").to_list()]
    music = [i for i, d in zip(network.ids("item"), departments, strict=True) if d == "music"][:4]
    (answer,) = recommender.recommend(likes=music, top=160)
    assert answer.user is None
    assert [item.id for item in answer.likes] == music
    assert {hit.id for hit in answer.ranking.hits if hit.known} == set(music)
    (other,) = recommender.recommend(likes=[i for i in network.ids("item") if i not in music][:4], top=160)
    assert ids(answer) != ids(other)
    (same,) = recommender.recommend(likes=music[::-1], top=160)
    assert ids(same) == ids(answer)


def test_an_item_that_was_added_after_training_is_recommended_by_its_text(tmp_path: Path) -> None:
    spec = write_shop(tmp_path / "tables", ShopOptions(items=160, users=60, purchases=8))
    with (spec.parent / "items.csv").open("a", encoding="utf-8") as table:
        table.write("cold,guitar drum string new box,music,brand-1\n")
    network = build_network(NetworkSpec.load(spec), tmp_path / "network", data=spec.parent)
    (answer,) = Recommender(trained_shop(), network.path, "cpu").recommend("user-3", top=161)
    assert set(ids(answer)) == {*shop().ids("item"), "cold"}
    vectors = embed(Run(trained_shop()).model(), network)
    rows = network.rows("item", ids(answer))
    scores = vectors["item"][rows] @ vectors["user"][network.rows("user", ["user-3"])[0]]
    assert (np.diff(scores) <= 1e-5).all()


def test_several_relations_have_their_own_scores() -> None:
    recommender = Recommender(trained_shop(BOTH), device="cpu")
    model, network = Run(trained_shop(BOTH)).model(), shop(BOTH)
    scales = {name: model.relation_scale(name) for name in ("bought", "made_by")}
    assert all(
        scale is not None and not torch.equal(scale, torch.ones_like(scale)) for scale in scales.values()
    )
    vectors = embed(model, network)
    (answer,) = recommender.recommend("item-5", type="brand", top=100)
    assert answer.relation == "made_by"
    assert scales["made_by"] is not None
    row = network.rows("item", ["item-5"])[0]
    scores = vectors["brand"] @ (vectors["item"][row] * scales["made_by"].detach().numpy())
    assert ids(answer) == [network.ids("brand")[i] for i in np.argsort(-scores, kind="stable")]


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({}, "there is no user to recommend to: give the id of a user, or items that one has."),
    ({"users": ["user-3"], "likes": ["item-1"]}, "likes is for a user who is not in the network"),
    ({"users": ["nobody"]}, "there is no user or item with the id or name 'nobody'"),
    ({"users": ["user-3"], "type": "brand"}, "type is 'brand', expected an end of a predicted relation"),
    ({"users": ["user-3"], "type": "colour"}, "type is 'colour', expected one of 'item', 'user', 'brand'"),
    ({"users": ["user-3"], "where": "price >"}, "the filter, position 8: found the end"),
    ({"likes": ["nothing"]}, "there is no item with the id or name 'nothing'"),
]


@pytest.mark.parametrize(("asked", "message"), MISTAKES)
def test_a_mistake_is_one_sentence(asked: dict[str, Any], message: str) -> None:
    users = asked.pop("users", [])
    with pytest.raises(InputError) as caught:
        recommend_run(trained_shop(), users, replace(RecommendOptions(device="cpu"), **asked))
    assert message in str(caught.value)
    assert str(caught.value).endswith(".")


def test_at_least_one() -> None:
    with pytest.raises(InputError, match="top is 0, expected at least 1"):
        RecommendOptions(top=0)
