"""The order of pairs: all of them each epoch, new each time, the same again after a stop."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heterformer.batches.batch import PairBatch
from heterformer.batches.batcher import Batcher
from heterformer.batches.pairs import TrainingBatches, evaluation_key, evaluation_sampler
from heterformer.batches.visible import VisibleNetwork
from heterformer.network.schema import Relation
from heterformer.network.split.draw import make_split
from heterformer.network.split.options import SplitOptions
from tests.batches.decoding import Decoder, decoder, same
from tests.learning import tiny_network, tiny_tokens
from tests.networks import Facts, few, networks, pairs_of


@pytest.fixture(scope="module")
def read() -> Iterator[Decoder]:
    """Thirty papers, each of which cites ten; three neighbours are sampled."""
    names = [str(i) for i in range(30)]
    edges = [(str(i), str((i + d) % 30)) for i in range(30) for d in range(1, 11)]
    relations = {Relation("cites", "paper", "paper"): edges}
    texts = {"paper": [f"paper n{i}" for i in names]}
    with decoder(Facts({"paper": names}, texts, relations, "cites", {"paper": 3})) as opened:
        yield opened


def batches(
    read: Decoder, count: int = 30, batch_size: int = 7, seed: int = 0, fresh: bool = False, **more: Any
) -> TrainingBatches:
    queries = np.arange(count)
    pairs = np.stack([queries, (queries + 1) % 30], axis=1)
    return TrainingBatches(read.batcher(), pairs, batch_size, seed, fresh=fresh, **more)


def epoch_of(made: TrainingBatches, epoch: int, start: int = 0) -> list[PairBatch]:
    return [made.batch(epoch, step) for step in range(start, made.steps_per_epoch)]


def ends(read: Decoder, batch: PairBatch) -> list[tuple[str, str]]:
    """The pairs of a batch."""
    names = [c.node[1] for c in read.centers(batch)]
    return list(zip(names[batch.queries], names[batch.keys], strict=True))


def queries(read: Decoder, batch: PairBatch) -> list[str]:
    return [query for query, _ in ends(read, batch)]


def test_an_epoch_meets_every_pair_once_in_a_new_order(read: Decoder) -> None:
    made = batches(read)
    orders = [[q for batch in epoch_of(made, epoch) for q in queries(read, batch)] for epoch in range(3)]
    for order in orders:
        assert sorted(order, key=int) == [str(i) for i in range(30)]
    assert orders[0] != orders[1] != orders[2] != orders[0]


@pytest.mark.parametrize(("count", "steps"), [(21, 3), (22, 3), (23, 4), (7, 1), (8, 1), (6, 1), (1, 0)])
def test_a_last_batch_of_one_pair_is_left_out(count: int, steps: int, read: Decoder) -> None:
    made = batches(read, count)
    assert made.steps_per_epoch == steps
    sizes = [batch.pairs for batch in epoch_of(made, 0)]
    assert sum(sizes) == count - (count % 7 == 1)


def test_neighbours_are_new_each_step_and_each_epoch(read: Decoder) -> None:
    made = batches(read, batch_size=30)
    samples = []
    for epoch in range(4):
        centers = read.centers(made.batch(epoch, 0))
        samples.append({c.node: frozenset(c.neighbors) for c in centers[:30]})
    changed = [sum(a[n] != b[n] for n in a) for a, b in itertools.pairwise(samples)]
    assert min(changed) > 20  # of 30, each of which has 3 of 19


def test_a_query_has_one_key_in_all_epochs_unless_keys_are_drawn_anew(read: Decoder) -> None:
    for fresh in (False, True):
        made = batches(read, fresh=fresh)
        keys: dict[str, list[str]] = {}
        for epoch in range(20):
            for query, key in (pair for batch in epoch_of(made, epoch) for pair in ends(read, batch)):
                keys.setdefault(query, []).append(key)
        assert {len(met) for met in keys.values()} == {20}
        assert all((int(key) - int(query)) % 30 in range(1, 11) for query in keys for key in keys[query])
        different = [len(set(met)) for met in keys.values()]  # of ten, in twenty draws
        assert min(different) > 5 if fresh else max(different) == 1


def test_another_seed_draws_other_keys(read: Decoder) -> None:
    one, other = (
        dict(
            pair for batch in epoch_of(batches(read, seed=seed, fresh=True), 0) for pair in ends(read, batch)
        )
        for seed in (0, 1)
    )
    assert sum(one[query] != other[query] for query in one) > 20  # of 30


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize("block", [1, 2, 32])
def test_a_batch_is_a_function_of_seed_epoch_and_step(block: int, fresh: bool, read: Decoder) -> None:
    straight = [batch for epoch in range(3) for batch in epoch_of(batches(read, fresh=fresh), epoch)]
    again = batches(read, fresh=fresh, steps_at_once=block)
    steps = again.steps_per_epoch
    for number in (13, 0, 7, 14, 3, 8):
        assert same(again.batch(*divmod(number, steps)), straight[number])
    resumed = epoch_of(batches(read, fresh=fresh), 1, start=2)
    assert len(resumed) == steps - 2
    assert all(same(a, b) for a, b in zip(resumed, straight[steps + 2 :], strict=False))


def test_another_seed_gives_other_batches(read: Decoder) -> None:
    one, other = (batches(read, seed=seed).batch(0, 0) for seed in (0, 1))
    assert queries(read, one) != queries(read, other)


def test_a_batch_has_the_frequencies_of_all_keys_of_its_step(read: Decoder) -> None:
    frequencies = np.arange(30, dtype=np.float32)
    made = [
        batches(read, log_frequencies={"": frequencies}, share=(rank, 2), batch_size=8) for rank in (0, 1)
    ]
    for step in range(made[0].steps_per_epoch):
        both = [one.batch(0, step) for one in made]
        keys = [int(key) for batch in both for _, key in ends(read, batch)]
        for batch in both:
            assert batch.log_frequencies is not None
            assert batch.log_frequencies.tolist() == keys
    assert batches(read).batch(0, 0).log_frequencies is None


def test_false_negatives_are_masked_unless_told_otherwise(read: Decoder) -> None:
    made = batches(read)
    mask = made.batch(0, 0).false_negatives
    assert mask is not None
    assert mask.shape == (7, 7)
    plain = TrainingBatches(made.batcher, made.pairs, 7, 0, false_negatives=False)
    assert plain.batch(0, 0).false_negatives is None


def test_evaluation_meets_the_pairs_in_their_order_with_a_fixed_sample(read: Decoder) -> None:
    made = batches(read)
    first, second = (made.batcher.pairs(made.pairs[:8], evaluation_key(3)) for _ in range(2))
    assert first.pairs == 8
    assert queries(read, first) == [query for query, _ in pairs_of(read.network, made.pairs[:8])]
    assert same(first, second)
    assert first.false_negatives is None


@few
@given(networks(), st.integers(0, 9), st.data())
def test_a_node_is_evaluated_with_the_same_neighbours_in_whatever_batch(
    facts: Facts, seed: int, data: st.DataObject
) -> None:
    with decoder(facts) as opened:
        every = np.arange(len(facts.ids["paper"]))
        batcher, sampler = opened.batcher(), evaluation_sampler(seed)
        whole = {c.node: c.neighbors for c in opened.centers(batcher.nodes("paper", every, sampler))}
        some = np.array(data.draw(st.permutations(every.tolist())))[: len(every) // 2]
        for center in opened.centers(batcher.nodes("paper", some, sampler)):
            assert set(center.neighbors) == set(whole[center.node])


def test_training_and_evaluation_share_no_stream(read: Decoder) -> None:
    made = batches(read, batch_size=30)
    trained = {c.node: set(c.neighbors) for c in read.centers(made.batch(0, 0))[:30]}
    batch = made.batcher.pairs(made.pairs, evaluation_key(0))
    evaluated = {c.node: set(c.neighbors) for c in read.centers(batch)[:30]}
    assert sum(trained[n] != evaluated[n] for n in trained) > 20


@pytest.mark.parametrize("of", ["both", "queries"])
def test_dropped_neighbours_are_those_of_whole_centres_and_no_others(read: Decoder, of: str) -> None:
    plain = batches(read)
    dropping = batches(read, neighbor_dropout=0.4, neighbor_dropout_of=of)
    dropped = {"queries": 0, "keys": 0}
    for epoch, step in itertools.product(range(8), range(plain.steps_per_epoch)):
        batch = dropping.batch(epoch, step)
        before, after = read.centers(plain.batch(epoch, step)), read.centers(batch)
        assert [c.node for c in after] == [c.node for c in before]
        assert all(c.neighbors for c in before)
        for role in dropped:
            pairs = list(zip(before[getattr(batch, role)], after[getattr(batch, role)], strict=True))
            assert all(now.neighbors in ([], then.neighbors) for then, now in pairs)
            dropped[role] += sum(not now.neighbors for _, now in pairs)
    assert dropped["queries"] / 240 == pytest.approx(0.4, abs=0.1)
    assert dropped["keys"] / 240 == pytest.approx(0.4 if of == "both" else 0.0, abs=0.1)


def test_dropping_needs_no_text_of_a_dropped_neighbour(read: Decoder) -> None:
    batch = batches(read, neighbor_dropout=0.9).batch(0, 0)
    neighbors = {node for center in read.centers(batch) for _, node in center.neighbors}
    assert set(read.texts(batch)[: batch.neighbor_texts]) == neighbors


def test_processes_drop_the_same_neighbours_as_one_process(read: Decoder) -> None:
    alone = batches(read, neighbor_dropout=0.5).batch(1, 2)
    centers = read.centers(alone)
    for role in ("queries", "keys"):
        shares = [batches(read, neighbor_dropout=0.5, share=(rank, 2)).batch(1, 2) for rank in range(2)]
        together = [c for share in shares for c in read.centers(share)[getattr(share, role)]]
        assert together == centers[getattr(alone, role)]


def test_a_single_relation_has_the_batches_that_it_always_had() -> None:
    """A digest from before several relations could be predicted: earlier runs are resumed as they were."""
    network = tiny_network()
    split = make_split(network, SplitOptions(hold_out=0.1, seed=3))
    digest = hashlib.blake2b(digest_size=8)
    for part in (split.train, split.validation, split.test):
        digest.update(np.ascontiguousarray(part).tobytes())
    batcher = Batcher(VisibleNetwork.for_training(network, split), tiny_tokens())
    made = TrainingBatches(batcher, split.part("train"), 16, 5, fresh=True, neighbor_dropout=0.3)
    for step in range(2 * made.steps_per_epoch):
        batch = made.of_run_step(step)
        assert batch.false_negatives is not None
        edges = [tensor for n in batch.neighbors.values() for tensor in (n.center, n.node)]
        first = (batch.texts.tokens, batch.centers, batch.false_negatives)
        for tensor in (*first, *edges, *batch.textless.values()):
            digest.update(np.ascontiguousarray(tensor.numpy()).tobytes())
    assert digest.hexdigest() == "649f328c6ffa1c70"
