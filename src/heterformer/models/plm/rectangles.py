"""Texts of similar length as rectangles of tokens, padded where that saves time.

In half precision a CPU prepares each product anew for every shape, which takes longer than a small product
itself. Padded rectangles have few shapes, which occur again from step to step.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import torch
from torch import Tensor

from heterformer.models.plm.packing import Block
from heterformer.models.plm.rounding import next_multiple


@dataclass(frozen=True)
class Rectangle:
    """Consecutive texts as ``size`` times ``length`` places for tokens, padding included."""

    texts: slice
    tokens: slice
    size: int  # padding texts included
    length: int
    rows: Tensor | None = None  # (n L,): which of the tokens stands in each place; any in a place of padding
    masked: Tensor | None = None  # (n, 1, L, L) bool: keys that are padding, for queries that are not
    places: Tensor | None = None  # (tokens,): where each token stands

    def read(self, values: Tensor, zeros: bool = False) -> Tensor:
        """(n L, …): the rows of tokens, (T, …); in places of padding some other row, or zeros."""
        own = values[self.tokens]
        if self.rows is None or self.places is None:
            return own
        if not zeros:
            return own.index_select(0, self.rows)
        return own.new_zeros(len(self.rows), *own.shape[1:]).index_copy_(0, self.places, own)

    def read_texts(self, values: Tensor) -> Tensor:
        """(n, …): the rows of texts, (U, …); zeros for texts that are padding."""
        own = values[self.texts]
        missing = self.size - len(own)
        return own if not missing else torch.cat([own, own.new_zeros(missing, *own.shape[1:])])

    @contextmanager
    def writing(self, values: Tensor) -> Iterator[Tensor]:
        """The way back: (n L, …) to be filled, of which the rows of tokens go into ``values``."""
        out = values[self.tokens]
        if self.places is None:
            yield out
        else:
            rows = out.new_empty(self.size * self.length, *out.shape[1:])
            yield rows
            torch.index_select(rows, 0, self.places, out=out)


def rectangles(blocks: list[Block], tokens_at_once: int, multiple: int = 1) -> list[Rectangle]:
    """Blocks of equally long texts as rectangles of at most that many tokens.

    With a ``multiple`` above 1 texts are padded to the next multiple of it in length, and texts of the same
    length then are padded to a multiple of it in number.
    """
    pieces: list[Rectangle] = []
    for length, group in groupby(blocks, key=lambda block: next_multiple(block.length, multiple)):
        at_once = max(1, tokens_at_once // max(length, 1) // multiple) * multiple
        for lengths, text, token in _pieces(list(group), at_once):
            size = next_multiple(len(lengths), multiple)
            pieces.append(_rectangle(lengths, length, size, text, token))
    return pieces


def _pieces(blocks: list[Block], at_once: int) -> Iterator[tuple[np.ndarray, int, int]]:
    """At most so many texts at a time: their lengths, the first text and the first token."""
    lengths = np.repeat([block.length for block in blocks], [block.size for block in blocks])
    token = blocks[0].tokens.start
    for start in range(0, len(lengths), at_once):
        some = lengths[start : start + at_once]
        yield some, blocks[0].texts.start + start, token
        token += int(some.sum())


def _rectangle(lengths: np.ndarray, length: int, size: int, text: int, token: int) -> Rectangle:
    tokens = int(lengths.sum())
    texts, rows = slice(text, text + len(lengths)), slice(token, token + tokens)
    if tokens == size * length:
        return Rectangle(texts, rows, size, length)
    filled = np.zeros((size, length), dtype=bool)
    filled[: len(lengths)] = np.arange(length) < lengths[:, None]
    places = np.flatnonzero(filled)
    row = np.zeros(size * length, dtype=np.int64)
    row[places] = np.arange(tokens)
    # A query that is padding sees all keys: a softmax over nothing would be NaN.
    masked = (filled[:, :, None] & ~filled[:, None])[:, None]
    tensors = (torch.from_numpy(x) for x in (row, masked, places))
    return Rectangle(texts, rows, size, length, *tensors)
