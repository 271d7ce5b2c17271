"""Parts of a batch are what the batcher would have made of those pairs alone."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heterformer.batches.pairs import TrainingBatches, evaluation_key
from heterformer.batches.slices import pair_slice, slices
from heterformer.network.schema import Relation
from heterformer.network.split.options import SplitOptions
from tests.batches.decoding import Decoder, decoder, same
from tests.networks import Facts, few, networks, split_of

SPLIT = SplitOptions()


@pytest.mark.parametrize("second_hop", [0, 2])
@few
@given(networks(), st.data())
def test_a_slice_is_the_batch_of_its_pairs(second_hop: int, facts: Facts, data: st.DataObject) -> None:
    with decoder(facts) as read:
        pairs = split_of(read.network, SPLIT).train
        batcher, key = read.batcher(second_hop=second_hop), evaluation_key(3)
        whole = batcher.pairs(pairs, key, false_negatives=True)
        start = data.draw(st.integers(0, len(pairs) - 1))
        stop = data.draw(st.integers(start + 1, len(pairs)))
        found = pair_slice(whole, start, stop)
        assert same(found, batcher.pairs(pairs[start:stop], key))
        assert found.pair_offset == start
        assert pair_slice(found, 0, 1).pair_offset == start
        assert same(pair_slice(found, 0, 1), batcher.pairs(pairs[start : start + 1], key))
        unnumbered = pair_slice(replace(whole, text_rows=None), start, stop)
        assert read.centers(unnumbered) == read.centers(found)


def test_slices_are_all_pairs_in_their_order() -> None:
    with thirty() as read:
        batch = made(read).batch(0, 0)
        parts = slices(batch, 3)
        assert [part.pair_offset for part in parts] == [0, 3, 6]
        assert [part.pairs for part in parts] == [3, 3, 1]
        for role in ("queries", "keys"):
            nodes = [c.node for part in parts for c in read.centers(part)[getattr(part, role)]]
            assert nodes == [c.node for c in read.centers(batch)[getattr(batch, role)]]
        assert slices(batch) == slices(batch, 7) == [batch]


def test_further_negatives_are_divided_as_the_pairs_are() -> None:
    with thirty() as read:
        batch = made(read).batch(0, 0)
        with_negatives = replace(batch, pairs=3)  # three queries, their keys, and eight negatives
        nodes = [c.node for c in read.centers(batch)]
        parts = slices(with_negatives, 1)
        assert [len(read.centers(part)) for part in parts] == [4, 5, 5]
        found = [c.node for part in parts for c in read.centers(part)[part.negatives]]
        assert found == nodes[with_negatives.negatives]
        assert [read.centers(part)[1].node for part in parts] == nodes[3:6]


@pytest.mark.parametrize("processes", [2, 3])
@pytest.mark.parametrize("fresh", [False, True])
def test_processes_have_the_parts_of_the_batch_that_one_would_have(processes: int, fresh: bool) -> None:
    with thirty() as read:
        alone = made(read, fresh=fresh)
        shared = [made(read, (rank, processes), fresh=fresh) for rank in range(processes)]
        for step in (*range(alone.steps_per_epoch), 1):
            whole = alone.batch(0, step)
            pairs = whole.pairs
            for rank, batches in enumerate(shared):
                assert batches.steps_per_epoch == alone.steps_per_epoch == 5
                part, most = batches.batch(0, step), -(-7 // processes)
                rows = slice(min(rank * most, pairs), min((rank + 1) * most, pairs))
                assert part.pairs == len(part.centers) // 2 == rows.stop - rows.start
                assert part.pair_offset == rows.start
                if not len(part.centers):
                    assert step == 4
                    assert rank > 0
                    assert slices(part, 1) == []
                    continue
                expected = pair_slice(whole, rows.start, rows.stop)
                assert same(replace(part, false_negatives=None), expected)
                assert part.false_negatives is not None
                assert whole.false_negatives is not None
                assert part.false_negatives.tolist() == whole.false_negatives[rows].tolist()
                assert step == 4 or whole.false_negatives.any()


def made(read: Decoder, share: tuple[int, int] = (0, 1), fresh: bool = False) -> TrainingBatches:
    """Five steps, of which the last has two pairs."""
    queries = np.arange(30)
    pairs = np.stack([queries, (queries + 1) % 30], axis=1)
    return TrainingBatches(read.batcher(), pairs, 7, 0, fresh=fresh, share=share)


def thirty() -> AbstractContextManager[Decoder]:
    """Thirty papers, each of which cites ten and has an author of three papers."""
    names = [str(i) for i in range(30)]
    cites = [(str(i), str((i + d) % 30)) for i in range(30) for d in range(1, 11)]
    written = [(str(i), str(i // 3)) for i in range(30)]
    relations = {
        Relation("cites", "paper", "paper"): cites,
        Relation("written_by", "paper", "author"): written,
    }
    texts = {"paper": [f"paper n{i}" for i in names]}
    ids = {"paper": names, "author": [str(i) for i in range(10)]}
    return decoder(Facts(ids, texts, relations, "cites", {"paper": 3, "author": 1}))
