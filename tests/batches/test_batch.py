"""Packed texts and batches as such."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from heterformer.batches.batch import Batch, Neighbors, Texts
from heterformer.network.schema import EdgeType
from tests.networks import few

TEXTS = st.lists(st.lists(st.integers(0, 99), max_size=5), min_size=1, max_size=6)


def packed(texts: list[list[int]]) -> Texts:
    lengths = torch.tensor([0, *map(len, texts)])
    return Texts(torch.tensor([t for text in texts for t in text], dtype=torch.int64), lengths.cumsum(0))


def unpacked(texts: Texts) -> list[list[int]]:
    return [list(part.tolist()) for part in texts.tokens.split(texts.lengths.tolist())]


@few
@given(TEXTS, st.data())
def test_texts_are_counted_selected_and_cut_as_lists_are(texts: list[list[int]], data: st.DataObject) -> None:
    every = packed(texts)
    assert len(every) == len(texts)
    assert unpacked(every) == texts
    count = data.draw(st.integers(0, len(texts)))
    assert unpacked(every.first(count)) == texts[:count]
    index = data.draw(st.lists(st.integers(0, len(texts) - 1)))
    chosen = every.select(torch.tensor(index, dtype=torch.int64))
    assert unpacked(chosen) == [texts[i] for i in index]


def test_the_first_texts_are_no_copy() -> None:
    texts = packed([[1, 2], [3]])
    assert texts.first(1).tokens.data_ptr() == texts.tokens.data_ptr()


def test_a_batch_is_moved_with_all_that_it_holds() -> None:
    edge_type = EdgeType("paper", "cites", "paper")
    batch = Batch(
        texts=packed([[1, 2], [3]]),
        neighbor_texts=1,
        centers=torch.tensor([1]),
        neighbors={edge_type: Neighbors(torch.tensor([0]), torch.tensor([0]))},
        textless={"author": torch.tensor([4])},
        false_negatives=torch.zeros(1, 1, dtype=torch.bool),
    )
    moved = batch.to("meta")
    assert moved.neighbor_texts == 1
    assert moved.false_negatives is not None
    edges = moved.neighbors[edge_type]
    tensors = (moved.texts.tokens, moved.texts.offsets, moved.centers, edges.center, edges.node)
    assert all(t.is_meta for t in (*tensors, moved.textless["author"], moved.false_negatives))
    assert not batch.centers.is_meta
