"""Packed texts and batches as such."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from heterformer.batches.batch import Batch, Neighbors, PairBatch, Texts
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


@few
@given(TEXTS, st.data())
def test_texts_that_nobody_reads_are_emptied_and_the_others_keep_their_places(
    texts: list[list[int]], data: st.DataObject
) -> None:
    index = data.draw(st.lists(st.integers(0, len(texts) - 1)))
    left = packed(texts).emptied_except(torch.tensor(index, dtype=torch.int64))
    assert unpacked(left) == [text if i in index else [] for i, text in enumerate(texts)]
    assert torch.equal(left.content_hashes(), packed(texts).content_hashes())


def test_without_neighbour_texts_only_centres_have_tokens() -> None:
    texts = packed([[1, 2], [3], [4, 5, 6]])
    edges = {EdgeType("paper", "cites", "paper"): Neighbors(torch.tensor([0, 1]), torch.tensor([0, 1]))}
    batch = Batch(texts, 2, torch.tensor([2, 1]), edges, {}, text_rows=torch.tensor([5, 6, 0]))
    left = batch.without_neighbor_texts()
    assert unpacked(left.texts) == [[], [3], [4, 5, 6]]
    assert left.neighbor_texts == 2
    assert left.centers is batch.centers
    assert left.neighbors is edges
    assert unpacked(batch.texts) == [[1, 2], [3], [4, 5, 6]]


def test_the_first_texts_are_no_copy() -> None:
    texts = packed([[1, 2], [3]])
    assert texts.first(1).tokens.data_ptr() == texts.tokens.data_ptr()


def test_a_batch_is_moved_with_all_that_it_holds() -> None:
    edge_type = EdgeType("paper", "cites", "paper")
    batch = PairBatch(
        texts=packed([[1, 2], [3]]),
        neighbor_texts=1,
        centers=torch.tensor([1, 0]),
        neighbors={edge_type: Neighbors(torch.tensor([0]), torch.tensor([0]))},
        textless={"author": torch.tensor([4])},
        text_rows=torch.tensor([8, 9]),
        task="cites",
        pairs=1,
        false_negatives=torch.zeros(1, 1, dtype=torch.bool),
    )
    moved = batch.to("meta")
    assert moved.neighbor_texts == 1
    assert moved.false_negatives is not None
    edges = moved.neighbors[edge_type]
    tensors = (moved.texts.tokens, moved.texts.offsets, moved.centers, edges.center, edges.node)
    assert all(t.is_meta for t in (*tensors, moved.textless["author"], moved.false_negatives))
    assert not batch.centers.is_meta
    assert moved.text_rows is batch.text_rows, "by which the processor finds stored states"
