"""Positives drawn anew: true targets, those that training may see, all of them equally often."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heterformer.batches.positives import fresh_positives, log_key_frequencies
from heterformer.batches.randomness import stream_key
from heterformer.batches.visible import VisibleNetwork
from heterformer.network.schema import Relation
from heterformer.network.split.options import SplitOptions
from heterformer.network.store import Network
from tests.networks import Facts, few, networks, pairs_of, split_of

DRAWS = 300


def named(network: Network, visible: VisibleNetwork, pairs: list[list[int]], key: int) -> dict[str, str]:
    """The key that is drawn for each query, by their ids."""
    drawn = fresh_positives(visible, np.array(pairs, dtype=np.int64), stream_key(key))
    assert drawn[:, 0].tolist() == [query for query, _ in pairs]
    return dict(pairs_of(network, drawn))


@few
@given(networks(), st.integers(0, 3), st.sampled_from([0.0, 0.25]))
def test_all_that_training_may_see_is_drawn_equally_often_and_nothing_else(
    facts: Facts, seed: int, hold_out: float
) -> None:
    with facts.built() as network:
        split = split_of(network, SplitOptions(hold_out=hold_out, seed=seed))
        relation = facts.predicted
        hidden = {(t, i) for t, rows in split.hidden.items() for i in network.ids(t, rows)}
        # A pair that is held out is gone in both directions, if there are two.
        held_out = set(pairs_of(network, split.held_out))
        if relation.source == relation.target:
            held_out |= {(key, query) for query, key in held_out}
        allowed: dict[str, set[str]] = {}
        for query, key in facts.edges(relation) - held_out:
            if not hidden & {(relation.source, query), (relation.target, key)}:
                allowed.setdefault(query, set()).add(key)
        visible = VisibleNetwork.for_training(network, split)
        counts: dict[str, Counter[str]] = {}
        for key in range(DRAWS):
            for query, drawn in named(network, visible, split.train.tolist(), key).items():
                counts.setdefault(query, Counter())[drawn] += 1
        for query, count in counts.items():
            assert set(count) == allowed[query]  # the rarest share is 1 in 11: none is missed by chance
            share = DRAWS / len(allowed[query])
            assert all(abs(number - share) < 5 * share**0.5 for number in count.values())


@pytest.fixture
def odd() -> Facts:
    """a cites b; it extends c and is cited by d, which makes neither of them its target."""
    cites, extends = (Relation(name, "paper", "paper") for name in ("cites", "extends"))
    names = ["a", "b", "c", "d"]
    texts = {"paper": [f"paper n{i}" for i in range(4)]}
    relations = {cites: [("a", "b"), ("d", "a")], extends: [("a", "c")]}
    return Facts({"paper": names}, texts, relations, "cites", {"paper": 3})


def test_other_edges_of_a_query_are_not_drawn(odd: Facts) -> None:
    with odd.built() as network:
        visible = VisibleNetwork.whole(network)
        for key in range(30):
            assert named(network, visible, [[3, 0], [0, 1]], key) == {"d": "a", "a": "b"}


def test_a_query_without_a_visible_target_keeps_its_key(odd: Facts) -> None:
    with odd.built() as network:
        visible = VisibleNetwork(network, {network.schema.predicted[0].name: np.array([[0, 1]])})
        assert named(network, visible, [[0, 1], [3, 0], [1, 2]], 0) == {"a": "b", "d": "a", "b": "c"}


def test_a_draw_depends_on_the_key_and_the_query_alone() -> None:
    targets = [f"t{i}" for i in range(50)]
    relation = Relation("uses", "paper", "work")
    ids = {"paper": [f"q{i}" for i in range(20)], "work": targets}
    texts = {t: [f"{t} n{i}" for i in range(len(names))] for t, names in ids.items()}
    edges = [(query, target) for query in ids["paper"] for target in targets]
    with Facts(ids, texts, {relation: edges}, "uses", {}).built() as network:
        visible = VisibleNetwork.whole(network)
        every = named(network, visible, [[query, 0] for query in range(20)], 5)
        some = named(network, visible, [[query, 9] for query in (17, 3, 4)], 5)
        assert some == {query: every[query] for query in ("q17", "q3", "q4")}
        assert len(set(every.values())) > 10  # queries do not move together
        other = named(network, visible, [[query, 0] for query in range(20)], 6)
        assert sum(every[query] != other[query] for query in every) > 15


def test_keys_are_drawn_in_proportion_to_weights() -> None:
    names = [str(i) for i in range(5)]
    edges = [("0", "1"), ("0", "2"), ("0", "3"), ("4", "1")]
    relation = Relation("cites", "paper", "paper")
    texts = {"paper": [f"paper n{i}" for i in names]}
    weights = {"cites": {"weight": [1.0, 0.0, 3.0, 0.0]}}
    facts = Facts({"paper": names}, texts, {relation: edges}, "cites", {"paper": 3}, edge_values=weights)
    with facts.built() as network:
        visible = VisibleNetwork.whole(network)
        drawn = [named(network, visible, [[4, 1], [0, 2]], key) for key in range(10 * DRAWS)]
        counts = Counter(keys["0"] for keys in drawn)
        assert set(counts) == {"1", "3"}
        assert abs(counts["3"] / len(drawn) - 0.75) < 4 * (0.1875 / len(drawn)) ** 0.5
        assert {keys["4"] for keys in drawn} == {"1"}  # which has no weight: it keeps its own


def test_small_weights_count_beside_large_ones_of_another_query() -> None:
    names = [str(i) for i in range(5)]
    edges = [("0", "1"), ("0", "2"), ("3", "1"), ("3", "4")]
    relation = Relation("cites", "paper", "paper")
    texts = {"paper": [f"paper n{i}" for i in names]}
    weights = {"cites": {"weight": [1e20, 2e20, 1.0, 3.0]}}
    facts = Facts({"paper": names}, texts, {relation: edges}, "cites", {"paper": 3}, edge_values=weights)
    with facts.built() as network:
        visible = VisibleNetwork.whole(network)
        drawn = [named(network, visible, [[0, 1], [3, 1]], key) for key in range(10 * DRAWS)]
        for query, key, share in (("0", "2", 2 / 3), ("3", "4", 3 / 4)):
            counts = Counter(keys[query] for keys in drawn)
            assert abs(counts[key] / len(drawn) - share) < 4 * (share * (1 - share) / len(drawn)) ** 0.5


@few
@given(networks(), st.integers(0, 3))
def test_frequencies_are_those_of_the_keys_that_are_drawn(facts: Facts, seed: int) -> None:
    with facts.built() as network:
        split = split_of(network, SplitOptions(seed=seed))
        visible, pairs = VisibleNetwork.for_training(network, split), split.train
        nodes = network.schema.counts[facts.predicted.target]
        fixed = np.bincount(pairs[:, 1], minlength=nodes)
        expected = np.log(np.maximum(fixed, 1) / len(pairs))
        np.testing.assert_allclose(log_key_frequencies(visible, pairs, fresh=False), expected, rtol=1e-5)
        drawn = np.zeros(nodes)
        for key in range(DRAWS):
            drawn += np.bincount(fresh_positives(visible, pairs, stream_key(key))[:, 1], minlength=nodes)
        fresh = np.exp(log_key_frequencies(visible, pairs, fresh=True)) * len(pairs)
        # A node that is drawn less than once an epoch counts as one that is drawn once.
        deviation = 5 * np.sqrt(fresh * DRAWS) / DRAWS
        assert (np.abs(fresh - np.maximum(drawn / DRAWS, 1.0)) <= deviation).all()
        often = drawn / DRAWS > 1.5
        assert (np.abs(fresh - drawn / DRAWS)[often] <= deviation[often]).all()


def test_frequencies_of_weighted_edges_are_in_proportion() -> None:
    names = [str(i) for i in range(6)]
    edges = [("0", "1"), ("0", "2"), ("3", "1"), ("4", "1"), ("5", "1")]
    relation = Relation("cites", "paper", "paper")
    texts = {"paper": [f"paper n{i}" for i in names]}
    weights = {"cites": {"weight": [3.0, 1.0, 2.0, 0.0, 1.0]}}
    facts = Facts({"paper": names}, texts, {relation: edges}, "cites", {"paper": 3}, edge_values=weights)
    with facts.built() as network:
        pairs = np.array([[0, 2], [3, 1], [4, 1], [5, 1]])  # "4" has no weight: it keeps its own
        found = np.exp(log_key_frequencies(VisibleNetwork.whole(network), pairs, fresh=True))
        np.testing.assert_allclose(found, np.array([1.0, 3.75, 1.0, 1.0, 1.0, 1.0]) / 4, rtol=1e-6)
