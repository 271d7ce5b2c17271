"""Batches of pairs and nodes: what is in them is what was sampled, once and in its place."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from heterformer.batches.batcher import Batcher
from heterformer.batches.pairs import evaluation_key
from heterformer.batches.randomness import stream_key
from heterformer.batches.sampling import SeededSampler
from heterformer.batches.visible import VisibleNetwork
from heterformer.models.inference import neighbor_text_rows
from heterformer.network.encoding import AttributeRows
from heterformer.network.schema import Relation
from heterformer.network.split.options import SplitOptions
from tests.batches.decoding import decoder, same
from tests.networks import Facts, few, networks, pairs_of, split_of, tokenizer

KEY = stream_key(0)
KEYS = st.integers(0, 99).map(stream_key)
SPLITS = st.builds(SplitOptions, hold_out=st.sampled_from([0.0, 0.25]), seed=st.integers(0, 3))


@few
@given(networks(), KEYS, st.data())
def test_neighbours_are_real_edges_in_their_direction_and_no_more_than_the_fan_out(
    facts: Facts, key: np.uint64, data: st.DataObject
) -> None:
    with decoder(facts) as read:
        node_type = data.draw(st.sampled_from(sorted(facts.texts)))
        rows = np.array(data.draw(st.lists(st.integers(0, len(facts.ids[node_type]) - 1), min_size=1)))
        centers = read.centers(read.batcher().nodes(node_type, rows, SeededSampler(key)))
        assert [c.node for c in centers] == [(node_type, facts.ids[node_type][r]) for r in rows]
        for center in centers:
            around = {(e, (e.neighbor, name)) for e, name in facts.around(center.node)}
            assert len(center.neighbors) == len(set(center.neighbors))
            assert set(center.neighbors) <= around
            drawn = Counter(e.neighbor for e, _ in center.neighbors)
            degrees = Counter(e.neighbor for e, _ in around)
            assert drawn == {t: min(n, facts.fan_out[t]) for t, n in degrees.items()}


@few
@given(networks(), KEYS, st.data())
def test_each_text_is_stored_once_neighbours_first(facts: Facts, key: np.uint64, data: st.DataObject) -> None:
    with decoder(facts) as read:
        pairs = read.network.edges(facts.predict)
        rows = data.draw(st.lists(st.integers(0, len(pairs[0]) - 1), min_size=1, max_size=8))
        batch = read.batcher().pairs(np.stack(pairs, axis=1).astype(np.int64)[rows], key)
        texts = read.texts(batch)
        assert len(texts) == len(set(texts))
        centers = read.centers(batch)
        neighbors = {n for c in centers for e, n in c.neighbors if e.neighbor in facts.texts}
        assert set(texts[: batch.neighbor_texts]) == neighbors
        assert set(texts[batch.neighbor_texts :]) == {c.node for c in centers} - neighbors
        contents = replace(batch.texts, hashes=None).content_hashes()
        found = batch.texts.content_hashes()
        assert torch.equal(found[: batch.neighbor_texts], contents[: batch.neighbor_texts])
        for node_type, met in batch.textless.items():
            named = {n for c in centers for e, n in c.neighbors if e.neighbor == node_type}
            assert len(met) == len(set(met.tolist())) == len(named) > 0
        for edges in batch.neighbors.values():
            assert (edges.center.diff() >= 0).all()
            assert len(edges.center) > 0
        words = [facts.texts[t][facts.ids[t].index(name)] for t, name in texts]
        assert batch.texts.tokens.tolist() == [n for w in words for n in tokenizer()(w)["input_ids"]]
        numbers = [read.tokens.text_offset[t] + facts.ids[t].index(name) for t, name in texts]
        assert batch.text_rows is not None
        assert batch.text_rows.tolist() == numbers


@few
@given(networks(), SPLITS, KEYS)
def test_pairs_are_queries_and_their_keys(facts: Facts, options: SplitOptions, key: np.uint64) -> None:
    with decoder(facts) as read:
        pairs = split_of(read.network, options).train
        batch = read.batcher().pairs(pairs, key)
        nodes = [c.node[1] for c in read.centers(batch)]
        named = pairs_of(read.network, pairs)
        assert nodes[batch.queries] == [query for query, _ in named]
        assert nodes[batch.keys] == [key for _, key in named]
        assert nodes[batch.negatives] == []
        assert (batch.task, batch.pairs) == (facts.predict, len(pairs))


@few
@given(networks(), SPLITS)
def test_several_batches_at_once_are_those_made_one_by_one(facts: Facts, options: SplitOptions) -> None:
    with decoder(facts) as read:
        split = split_of(read.network, options)
        batcher = read.batcher(VisibleNetwork.for_training(read.network, split))
        parts = [split.train[:1], split.train, split.train[1:]]
        keys = [stream_key(k) for k in range(3)]
        together = batcher.several(parts, keys, false_negatives=True)
        alone = [batcher.pairs(p, k, false_negatives=True) for p, k in zip(parts, keys, strict=True)]
        assert all(same(a, b) for a, b in zip(together, alone, strict=True))


@few
@given(networks(), SPLITS, st.integers(1, 20))
def test_masks_are_the_same_in_little_memory(facts: Facts, options: SplitOptions, entries: int) -> None:
    with decoder(facts) as read:
        split = split_of(read.network, options)
        batcher = read.batcher(VisibleNetwork.for_training(read.network, split))
        parts, keys = [split.train[:1], split.train, split.train[1:]], [stream_key(k) for k in range(3)]
        expected = batcher.several(parts, keys, false_negatives=True)
        found = batcher.several(parts, keys, false_negatives=True, mask_entries=entries)
        assert all(same(a, b) for a, b in zip(found, expected, strict=True))


@few
@given(networks(), SPLITS, st.booleans(), st.data())
def test_false_negatives_are_the_visible_edges_and_the_same_nodes(
    facts: Facts, options: SplitOptions, training: bool, data: st.DataObject
) -> None:
    relation = facts.predicted
    homogeneous = relation.source == relation.target
    with decoder(facts) as read:
        network = read.network
        split = split_of(network, options)
        view = VisibleNetwork.for_training if training else VisibleNetwork.for_evaluation
        held_out = {frozenset(p) if homogeneous else p for p in pairs_of(network, split.held_out)}
        hidden = {i for t, rows in split.hidden.items() if training for i in network.ids(t, rows)}
        visible = {
            (a, b)
            for a, b in facts.edges(relation)
            if (frozenset((a, b)) if homogeneous else (a, b)) not in held_out
            and a not in hidden
            and not (homogeneous and b in hidden)
        }
        count = data.draw(st.integers(1, 8))
        queries, keys = (
            np.array(
                data.draw(st.lists(st.integers(0, len(facts.ids[t]) - 1), min_size=count, max_size=count))
            )
            for t in (relation.source, relation.target)
        )
        pairs = np.stack([queries, keys], axis=1)
        mask = read.batcher(view(network, split)).pairs(pairs, KEY, false_negatives=True).false_negatives
        assert mask is not None
        names = pairs_of(network, pairs)
        for i, (query, own) in enumerate(names):
            for j, (_, other) in enumerate(names):
                true = (query, other) in visible or (homogeneous and (other, query) in visible)
                alike = other == own or (homogeneous and other == query)
                assert mask[i, j] == (i != j and (true or alike)), (query, own, other)


@few
@given(networks(), KEYS)
def test_a_fan_out_of_ones_own_comes_before_the_networks(facts: Facts, key: np.uint64) -> None:
    with decoder(facts) as read:
        visible = VisibleNetwork.whole(read.network)
        batch = Batcher(visible, read.tokens, {"paper": 2}).nodes("paper", np.arange(8), SeededSampler(key))
        assert {e.neighbor for e in batch.neighbors} <= {"paper"}
        assert max(Counter(len(c.neighbors) for c in read.centers(batch))) <= 2
        assert not batch.textless
        alone = Batcher(visible, read.tokens, {}).nodes("paper", np.arange(8), SeededSampler(key))
        assert (alone.neighbors, alone.neighbor_texts, len(alone.texts)) == ({}, 0, 8)


def test_centers_have_their_attributes() -> None:
    names = [str(i) for i in range(10)]
    edges = [(a, b) for a in names for b in names if int(a) + 1 == int(b)]
    texts = {"paper": [f"paper n{i}" for i in names]}
    facts = Facts(
        {"paper": names}, texts, {Relation("cites", "paper", "paper"): edges}, "cites", {"paper": 2}
    )
    numbers = np.arange(20, dtype=np.float32).reshape(10, 2)
    rows = AttributeRows(numbers, np.arange(10).reshape(10, 1))
    with decoder(facts) as read:
        batcher = Batcher(VisibleNetwork.whole(read.network), read.tokens, None, {"paper": rows})
        alone = batcher.nodes("paper", np.array([3, 7]), SeededSampler(stream_key(1)))
        own = alone.attributes["paper"]
        assert (own.center.tolist(), own.categories.tolist()) == ([0, 1], [[3], [7]])
        assert own.numbers.tolist() == numbers[[3, 7]].tolist()
        pairs = np.array([[0, 1], [2, 3]])
        alone = [np.array([[True, False], [False, False]])]
        (batch,) = batcher.several([pairs], [stream_key(1)], alone=alone)
        own = batch.attributes["paper"]  # queries, then keys; who has no neighbours has no attributes either
        assert (own.center.tolist(), own.categories.flatten().tolist()) == ([1, 2, 3], [2, 1, 3])
        assert read.batcher().nodes("paper", np.array([3]), SeededSampler(stream_key(1))).attributes == {}


@few
@given(networks(), SPLITS, KEYS)
def test_texts_of_neighbours_are_those_that_can_be_sampled(
    facts: Facts, options: SplitOptions, key: np.uint64
) -> None:
    with decoder(facts) as read:
        schema = read.network.schema
        visible = VisibleNetwork.for_training(read.network, split_of(read.network, options))
        batcher = Batcher(visible, read.tokens, dict.fromkeys(schema.node_types, 1000))
        met = [
            neighbor_text_rows(batcher.nodes(t, np.arange(schema.counts[t]), SeededSampler(key)))
            for t in schema.text_rich
        ]
        assert batcher.neighbor_texts().tolist() == np.unique(np.concatenate(met)).tolist()
        assert not len(Batcher(visible, read.tokens, dict.fromkeys(schema.text_rich, 0)).neighbor_texts())


@few
@given(networks(), st.integers(1, 3))
def test_a_neighbours_neighbours_are_its_own_sample(facts: Facts, second_hop: int) -> None:
    """Those of each text that is a neighbour, and of no other, whoever's neighbour it is."""
    with decoder(facts) as read:
        key = evaluation_key(1)
        pairs = split_of(read.network, SplitOptions()).train
        batch = read.batcher(second_hop=second_hop).pairs(pairs, key)
        near = {node for center in read.centers(batch) for _, node in center.neighbors}
        near = {node for node in near if node[0] in facts.texts}
        found = read.second_hop(batch)
        assert set(found) <= near
        visible = VisibleNetwork.whole(read.network)
        fan_out = {t: min(1, n) * second_hop for t, n in read.network.schema.neighbors.items()}
        alone = Batcher(visible, read.tokens, fan_out)
        for node_type, name in near:
            rows = read.network.rows(node_type, [name])
            (center,) = read.centers(alone.nodes(node_type, rows, SeededSampler(key)))
            assert sorted(center.neighbors, key=str) == sorted(found.get((node_type, name), []), key=str)
