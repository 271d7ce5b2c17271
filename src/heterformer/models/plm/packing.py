"""Texts in the order in which attention wants them: shortest first, equally long ones side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from heterformer.batches.batch import Texts


class Block(NamedTuple):
    """Consecutive texts of one length: their tokens are a (texts, length) rectangle without padding."""

    texts: slice
    tokens: slice
    size: int
    length: int


@dataclass(frozen=True)
class Packing:
    """Texts sorted by length. ``x[packing.rank]`` brings rows per sorted text back to the order given."""

    texts: Texts
    rank: Tensor  # (U,)
    blocks: list[Block]

    @property
    def first(self) -> Tensor:
        """The row of each text's first token, [CLS]."""
        return self.texts.offsets[:-1]  # (U,)

    def positions(self) -> Tensor:
        """The place of each token in its text, from 0."""
        start = self.first.repeat_interleave(self.texts.lengths)  # (T,)
        return torch.arange(start.numel(), device=start.device) - start

    def mean(self, hidden: Tensor) -> Tensor:
        """(T, d) token states to (U, d) means over each text."""
        rectangles = torch.split(hidden, [block.size * block.length for block in self.blocks])
        shapes = [(block.size, block.length, hidden.shape[1]) for block in self.blocks]
        means = [rows.view(shape).mean(1) for rows, shape in zip(rectangles, shapes, strict=True)]
        return torch.cat([hidden[:0], *means])


def pack(texts: Texts, index: Tensor | None = None) -> Packing:
    """Sort ``texts`` (or those at ``index``, repetitions and all) by length."""
    lengths = texts.lengths if index is None else texts.lengths[index]
    lengths, order = torch.sort(lengths, stable=True)
    sorted_texts = texts.select(order if index is None else index[order])
    rank = torch.empty_like(order)
    rank[order] = torch.arange(order.numel(), device=order.device)
    return Packing(sorted_texts, rank, _blocks(lengths))


def _blocks(lengths: Tensor) -> list[Block]:
    blocks, text, token = [], 0, 0
    values, counts = torch.unique_consecutive(lengths, return_counts=True)
    for length, count in zip(values.tolist(), counts.tolist(), strict=True):
        size = count * length
        blocks.append(Block(slice(text, text + count), slice(token, token + size), count, length))
        text, token = text + count, token + size
    return blocks
