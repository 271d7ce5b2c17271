from __future__ import annotations

import torch

from heterformer.models.plm.packing import Block
from heterformer.models.plm.rectangles import rectangles

# Two texts of 2 tokens, three of 3, one of 7: 20 tokens.
BLOCKS = [
    Block(slice(0, 2), slice(0, 4), 2, 2),
    Block(slice(2, 5), slice(4, 13), 3, 3),
    Block(slice(5, 6), slice(13, 20), 1, 7),
]


def test_without_padding_a_rectangle_is_of_one_length() -> None:
    pieces = rectangles(BLOCKS, 6)
    assert [(p.size, p.length, p.texts, p.tokens) for p in pieces] == [
        (2, 2, slice(0, 2), slice(0, 4)),
        (2, 3, slice(2, 4), slice(4, 10)),
        (1, 3, slice(4, 5), slice(10, 13)),
        (1, 7, slice(5, 6), slice(13, 20)),
    ]
    assert all(piece.rows is None for piece in pieces)


def test_padded_shapes_are_few() -> None:
    pieces = rectangles(BLOCKS, 100, 4)
    assert [(p.size, p.length, p.texts, p.tokens) for p in pieces] == [
        (8, 4, slice(0, 5), slice(0, 13)),
        (4, 8, slice(5, 6), slice(13, 20)),
    ]
    assert [p.size for p in rectangles(BLOCKS, 16, 4)] == [4, 4, 4]


def test_what_is_read_is_written_back() -> None:
    values = torch.arange(1.0, 41).view(20, 2)
    for multiple in (1, 4):
        back = torch.zeros_like(values)
        for piece in rectangles(BLOCKS, 100, multiple):
            own = piece.read(values)
            assert own.shape == (piece.size * piece.length, 2)
            with piece.writing(back) as rows:
                rows.copy_(own)
            assert float(piece.read(values, zeros=True).sum()) == float(values[piece.tokens].sum())
        assert torch.equal(back, values)


def test_keys_that_are_padding_are_masked_for_queries_that_are_not() -> None:
    (short, long) = rectangles(BLOCKS, 100, 4)
    assert short.masked is not None
    assert long.masked is not None
    masked_keys = short.masked[:, 0].sum(-1)  # (n, L)
    assert masked_keys[0].tolist() == [2, 2, 0, 0]
    assert masked_keys[4].tolist() == [1, 1, 1, 0]
    assert not masked_keys[5:].any()  # which are no texts
    assert long.masked[0, 0].nonzero()[:, 1].tolist() == [7] * 7
    texts = torch.ones(6, 1)
    assert short.read_texts(texts).flatten().tolist() == [1, 1, 1, 1, 1, 0, 0, 0]
