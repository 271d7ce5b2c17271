"""Batches that a thread makes ahead are the very batches, in whatever order they are asked for."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
import torch

from heterformer.batches.batch import PairBatch
from heterformer.batches.batcher import Batcher
from heterformer.batches.hard_negatives import HardNegatives
from heterformer.batches.pairs import TrainingBatches
from heterformer.batches.prefetch import Prefetcher
from heterformer.batches.visible import VisibleNetwork
from heterformer.network.split.draw import make_split
from tests.learning import tiny_network, tiny_tokens

SPLIT = make_split(tiny_network())


def new_batches(**more: Any) -> TrainingBatches:
    batcher = Batcher(VisibleNetwork.for_training(tiny_network(), SPLIT), tiny_tokens())
    return TrainingBatches(batcher, SPLIT.train, 16, seed=3, steps_at_once=4, neighbor_dropout=0.3, **more)


def whole(batch: PairBatch) -> PairBatch:
    """Batches as they are made, in no slices."""
    return batch


def assert_same(found: PairBatch, expected: PairBatch) -> None:
    assert torch.equal(found.texts.tokens, expected.texts.tokens)
    assert torch.equal(found.centers, expected.centers)
    assert found.neighbors.keys() == expected.neighbors.keys()
    for edge_type, edges in expected.neighbors.items():
        assert torch.equal(found.neighbors[edge_type].node, edges.node)
    assert found.false_negatives is not None
    assert expected.false_negatives is not None
    assert torch.equal(found.false_negatives, expected.false_negatives)


def places(batches: TrainingBatches, epochs: int) -> list[tuple[int, int]]:
    return [(epoch, step) for epoch in range(epochs) for step in range(batches.steps_per_epoch)]


@pytest.mark.parametrize("ahead", [1, 3, None])
def test_the_same_batches_in_order(ahead: int | None) -> None:
    plain = new_batches(fresh=True)
    with Prefetcher(new_batches(fresh=True), whole, ahead=ahead) as prefetcher:
        for place in places(plain, 3):
            assert_same(prefetcher.batch(*place), plain.batch(*place))
        thread = prefetcher._thread
    assert thread is not None
    assert not thread.is_alive()


def test_any_order() -> None:
    plain = new_batches()
    with Prefetcher(new_batches(), whole) as prefetcher:
        for place in ((1, 2), (1, 3), (0, 0), (0, 0), (0, 1), (5, plain.steps_per_epoch - 1), (6, 0)):
            assert_same(prefetcher.batch(*place), plain.batch(*place))


def test_other_negatives_count_at_once() -> None:
    """Batches that were made with the old ones are thrown away."""
    queries = np.unique(SPLIT.train[:, 0])
    rows = np.random.default_rng(0).integers(0, 200, (len(queries), 2))
    plain, ahead = new_batches(), new_batches()
    with Prefetcher(ahead, whole) as prefetcher:
        assert_same(prefetcher.batch(0, 0), plain.batch(0, 0))
        for batches in (plain, ahead):
            batches.use(HardNegatives(queries, rows))
        found = prefetcher.batch(0, 1)
        assert len(found.centers) > 2 * found.pairs
        assert_same(found, plain.batch(0, 1))


def test_others_may_look_at_batches_meanwhile() -> None:
    """A refresh of cached states looks at the batches of coming steps while the thread makes some."""
    plain, ahead = new_batches(fresh=True), new_batches(fresh=True)
    expected = [plain.batch(*place) for place in places(plain, 4)]
    with Prefetcher(ahead, whole, ahead=1) as prefetcher:
        for number, place in enumerate(places(plain, 4)):
            assert_same(ahead.of_run_step(len(expected) - 1 - number), expected[-1 - number])
            (_, found), (_, pairs) = (b.pairs_of_run_step(number) for b in (ahead, plain))
            assert np.array_equal(found, pairs)
            assert_same(prefetcher.batch(*place), expected[number])


def test_a_mistake_in_the_thread_is_the_callers(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = new_batches()
    made = TrainingBatches._make

    def failing(self: TrainingBatches, epoch: int, start: int, count: int) -> list[PairBatch]:
        if start:
            raise OSError("the disk is gone")
        return made(self, epoch, start, count)

    monkeypatch.setattr(TrainingBatches, "_make", failing)
    with Prefetcher(batches, whole) as prefetcher:
        for step in range(4):
            prefetcher.batch(0, step)
        with pytest.raises(OSError, match="the disk is gone"):
            prefetcher.batch(0, 4)
        assert prefetcher._thread is None


def test_a_thread_makes_them_ahead() -> None:
    """The second group is made although nobody has asked for it."""
    batches, made = new_batches(), threading.Event()
    make = batches._make

    def noted(epoch: int, start: int, count: int) -> list[PairBatch]:
        if start == 4:
            assert threading.current_thread() is not threading.main_thread()
            made.set()
        return make(epoch, start, count)

    batches._make = noted  # type: ignore[method-assign]
    with Prefetcher(batches, whole) as prefetcher:
        prefetcher.batch(0, 0)
        assert made.wait(60)
