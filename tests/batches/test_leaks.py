"""No neighbourhood tells what is asked: the leak tests, and proof that they would find a leak."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heterformer.batches import pairs as pairs_module
from heterformer.batches import sampling as sampling_module
from heterformer.batches.batch import PairBatch
from heterformer.batches.pairs import TrainingBatches, evaluation_key
from heterformer.batches.positives import fresh_positives
from heterformer.batches.randomness import stream_key
from heterformer.batches.sampling import SeededSampler, sample_neighbors
from heterformer.batches.visible import VisibleNetwork
from heterformer.network.schema import Relation
from heterformer.network.split.draw import make_split
from heterformer.network.split.options import SplitOptions
from heterformer.network.split.pairs import Pairs
from heterformer.network.split.split import Split
from tests.batches.decoding import Center, Decoder, Node, decoder
from tests.networks import Facts, few, networks, pairs_of, split_of

SPLITS = st.builds(
    SplitOptions,
    hold_out=st.sampled_from([0.0, 0.25]),
    seed=st.integers(0, 3),
    train=st.sampled_from([0.5, 0.7]),
)


class Secrets:
    """What must not be seen: held-out pairs always, hidden nodes in training."""

    def __init__(self, read: Decoder, split: Split) -> None:
        self.read = read
        self.held_out = {frozenset(ends) for ends in self.ends(split.held_out)}
        self.hidden = {(t, i) for t, rows in split.hidden.items() for i in read.network.ids(t, rows)}
        self.others = {
            frozenset(ends) for name, pairs in split.others.items() for ends in self.ends(pairs, name)
        }

    def ends(self, pairs: Pairs, name: str | None = None) -> list[tuple[Node, Node]]:
        relation = self.read.network.schema.relation(name or self.read.facts.predict)
        named = pairs_of(self.read.network, pairs, relation)
        return [((relation.source, query), (relation.target, key)) for query, key in named]

    def check(self, centers: Iterable[Center], *, training: bool) -> None:
        for center in centers:
            for edge_type, neighbor in center.neighbors:
                joined = f"{center.node} sees {neighbor} by {edge_type.relation}"
                assert frozenset([center.node, neighbor]) not in self.held_out, f"held-out pair: {joined}"
                assert frozenset([center.node, neighbor]) not in self.others, f"held-out other: {joined}"
                assert not (training and neighbor in self.hidden), f"hidden node: {joined}"

    def check_pairs(self, centers: list[Center], batch: PairBatch, *, training: bool) -> None:
        """Centres of a batch of pairs."""
        ends, others = centers[batch.queries], centers[batch.keys]
        for one, other in zip(ends + others, others + ends, strict=True):
            seen = [edge_type.relation for edge_type, node in one.neighbors if node == other.node]
            assert not seen, f"other end: {one.node} sees its partner by {seen}"
        self.check(centers, training=training)


def check_training(read: Decoder, split: Split, epochs: int = 3, fresh: bool = False) -> None:
    secrets, asked = Secrets(read, split), set(split.train[:, 0].tolist())
    visible = VisibleNetwork.for_training(read.network, split)
    batches = TrainingBatches(read.batcher(visible), split.train, batch_size=4, seed=7, fresh=fresh)
    for epoch in range(epochs):
        met = []
        for step in range(batches.steps_per_epoch):
            batch = batches.batch(epoch, step)
            centers = read.centers(batch)
            secrets.check_pairs(centers, batch, training=True)
            ends = zip(centers[batch.queries], centers[batch.keys], strict=True)
            met += [(query.node, key.node) for query, key in ends]
        assert {query for query, _ in met} <= {query for query, _ in secrets.ends(split.train)}
        assert len(met) >= len(asked) - 1
        if not fresh:
            assert set(met) <= set(secrets.ends(split.train))
        for pair in met:
            assert frozenset(pair) not in secrets.held_out, f"held-out pair asked for: {pair}"
            assert not secrets.hidden & set(pair), f"hidden node asked for: {pair}"


def check_evaluation(read: Decoder, split: Split) -> None:
    secrets = Secrets(read, split)
    batcher = read.batcher(VisibleNetwork.for_evaluation(read.network, split))
    for pairs in (split.validation, split.test):
        for seed in range(3):
            met = []
            for start in range(0, len(pairs), 4):
                batch = batcher.pairs(pairs[start : start + 4], evaluation_key(seed))
                centers = read.centers(batch)
                secrets.check_pairs(centers, batch, training=False)
                ends = zip(centers[batch.queries], centers[batch.keys], strict=True)
                met += [(query.node, key.node) for query, key in ends]
            assert met == secrets.ends(pairs)


def with_others(facts: Facts, options: SplitOptions) -> SplitOptions:
    """Pairs of all relations are held out."""
    others = [r.name for r, edges in facts.relations.items() if r != facts.predicted and edges]
    return replace(options, also=",".join(others) or None)


@few
@given(networks(), SPLITS, st.booleans())
def test_training_never_sees_the_other_end_a_held_out_pair_or_a_hidden_node(
    facts: Facts, options: SplitOptions, fresh: bool
) -> None:
    with decoder(facts) as read:
        check_training(read, split_of(read.network, with_others(facts, options)), fresh=fresh)


@few
@given(networks(), SPLITS)
def test_evaluation_never_sees_the_other_end_or_a_held_out_pair(facts: Facts, options: SplitOptions) -> None:
    with decoder(facts) as read:
        check_evaluation(read, split_of(read.network, with_others(facts, options)))


@few
@given(networks(), SPLITS, st.booleans())
def test_nodes_by_themselves_see_no_held_out_pair_either(
    facts: Facts, options: SplitOptions, training: bool
) -> None:
    with decoder(facts) as read:
        split = split_of(read.network, with_others(facts, options))
        visible = VisibleNetwork.for_training if training else VisibleNetwork.for_evaluation
        batcher = read.batcher(visible(read.network, split))
        for node_type, ids in facts.texts.items():
            for key in range(3):
                batch = batcher.nodes(node_type, np.arange(len(ids)), SeededSampler(stream_key(key)))
                Secrets(read, split).check(read.centers(batch), training=training)


@pytest.fixture
def complete() -> Facts:
    """Everybody cites and extends everybody, all neighbours are taken: any leak there is will show."""
    names = [str(i) for i in range(12)]
    edges = [(a, b) for a in names for b in names if a != b]
    relations = {Relation(name, "paper", "paper"): edges for name in ("cites", "extends")}
    texts = {"paper": [f"paper n{i}" for i in names]}
    return Facts({"paper": names}, texts, relations, "cites", {"paper": 100})


def no_partner(*arguments: Any) -> Any:
    return sample_neighbors(*arguments[:4])


def nothing_gone(*_: Any) -> Any:
    return np.empty(0, dtype=np.int64)


def nothing_hidden(network: Any, split: Split) -> VisibleNetwork:
    return VisibleNetwork(network, split.held_out)


def others_shown(network: Any, split: Split) -> VisibleNetwork:
    return VisibleNetwork(network, split.held_out, split.hidden)


def drawn_from_all(visible: VisibleNetwork, pairs: Pairs, key: np.uint64) -> Pairs:
    return fresh_positives(VisibleNetwork.whole(visible.network), pairs, key)


def check_fresh(read: Decoder, split: Split) -> None:
    check_training(read, split, epochs=10, fresh=True)


MUTATIONS = {
    "the other end is drawn": (sampling_module, "sample_neighbors", no_partner, check_training, "other end"),
    "held-out pairs stay in training": (
        VisibleNetwork,
        "_gone",
        nothing_gone,
        check_training,
        "held-out|hidden",
    ),
    "held-out pairs stay in evaluation": (
        VisibleNetwork,
        "_gone",
        nothing_gone,
        check_evaluation,
        "held-out",
    ),
    "hidden nodes stay": (VisibleNetwork, "for_training", nothing_hidden, check_training, "hidden node"),
    "pairs of another relation stay in training": (
        VisibleNetwork,
        "for_training",
        others_shown,
        check_training,
        "held-out other",
    ),
    "pairs of another relation stay in evaluation": (
        VisibleNetwork,
        "for_evaluation",
        others_shown,
        check_evaluation,
        "held-out other",
    ),
    "keys are drawn from all edges": (
        pairs_module,
        "fresh_positives",
        drawn_from_all,
        check_fresh,
        "(held-out pair|hidden node) asked for",
    ),
    "the other end is drawn, keys being new": (
        sampling_module,
        "sample_neighbors",
        no_partner,
        check_fresh,
        "other end",
    ),
}


def test_where_everything_is_joined_nothing_leaks(complete: Facts) -> None:
    with decoder(complete) as read:
        split = make_split(read.network, SplitOptions(hold_out=0.25, also="extends"))
        check_training(read, split)
        check_fresh(read, split)
        check_evaluation(read, split)


@pytest.mark.parametrize("what", MUTATIONS)
def test_the_leak_tests_find_a_leak(what: str, complete: Facts, monkeypatch: pytest.MonkeyPatch) -> None:
    where, name, mutation, check, message = MUTATIONS[what]
    with decoder(complete) as read:
        split = make_split(read.network, SplitOptions(hold_out=0.25, also="extends"))
        monkeypatch.setattr(where, name, mutation)
        with pytest.raises(AssertionError, match=message):
            check(read, split)
