"""Texts in the order in which attention wants them: shortest first, equally long ones side by side."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from heterformer.batches.batch import Texts
from heterformer.models.plm.rounding import rounded_up, rounding_pays


class Block(NamedTuple):
    """Consecutive texts of one length: their tokens are a (texts, length) rectangle without padding."""

    texts: slice
    tokens: slice
    size: int
    length: int


@dataclass(frozen=True)
class Packing:
    """Texts sorted by length. ``x[packing.rank]`` brings rows per sorted text back to the order given.

    Filler tokens, which belong to no text, may follow the tokens of the texts.
    """

    texts: Texts
    rank: Tensor  # (U,)
    blocks: list[Block]
    # (W,): the text that each sorted text is a window of, if there are windows; these are in the order given
    text_of_window: Tensor | None = None

    @property
    def first_token(self) -> Tensor:
        """The row of each text's first token, [CLS]."""
        return self.texts.offsets[:-1]  # (U,)

    @cached_property
    def text_of_token(self) -> Tensor:
        """(T,): the text that each token belongs to; filler tokens are left out."""
        lengths = self.texts.lengths
        return torch.arange(len(lengths), device=lengths.device).repeat_interleave(lengths)

    def positions(self) -> Tensor:
        """The place of each token in its text, from 0; 0 for filler tokens."""
        text = self.text_of_token
        places = torch.arange(len(text), device=text.device) - self.first_token[text]
        return F.pad(places, (0, len(self.texts.tokens) - len(text)))

    def mean(self, hidden: Tensor) -> Tensor:
        """(T, d) token states to (U, d) means over each text, or to the average of its windows' means."""
        text = self.text_of_token
        sums = hidden.new_zeros(len(self.texts), hidden.shape[1]).index_add(0, text, hidden[: len(text)])
        return self.average_windows(sums / self.texts.lengths[:, None].to(hidden.dtype))

    def average_windows(self, states: Tensor) -> Tensor:
        """(W, d) states of windows to (U, d) of texts; the same if texts are not divided."""
        if self.text_of_window is None:
            return states
        counts = torch.bincount(self.text_of_window, minlength=self.rank.numel())  # (U,)
        shares = states / counts[self.text_of_window][:, None].to(states.dtype)
        return states.new_zeros(self.rank.numel(), states.shape[1]).index_add(0, self.text_of_window, shares)

    def each_window(self, states: Tensor) -> Tensor:
        """(U, …) states of texts to (W, …): those of the text for each of its windows."""
        return states if self.text_of_window is None else states[self.text_of_window]


def pack(texts: Texts, index: Tensor | None = None, window: int | None = None) -> Packing:
    """Sort ``texts`` (or those at ``index``, repetitions and all) by length.

    With ``window`` none is longer: longer ones are divided into windows.
    """
    if window is not None:
        chosen = texts if index is None else texts.select(index)
        if len(chosen) and int(chosen.lengths.max()) > window:
            return _pack_windows(chosen, window)
    lengths = texts.lengths if index is None else texts.lengths[index]
    lengths, order = torch.sort(lengths, stable=True)
    sorted_texts = texts.select(order if index is None else index[order])
    rank = torch.empty_like(order)
    rank[order] = torch.arange(order.numel(), device=order.device)
    return Packing(_filled(sorted_texts), rank, _blocks(lengths))


def _filled(texts: Texts) -> Texts:
    """With filler tokens, at most an eighth more, where a rounded number of them pays."""
    tokens = texts.tokens
    if not rounding_pays(tokens):
        return texts
    return Texts(F.pad(tokens, (0, rounded_up(len(tokens)) - len(tokens))), texts.offsets)


def _pack_windows(texts: Texts, window: int) -> Packing:
    windows, text = _windows(texts, window)
    packing = pack(windows)
    text_of_window = torch.empty_like(text)
    text_of_window[packing.rank] = text
    rank = torch.arange(len(texts), device=text.device)
    return Packing(packing.texts, rank, packing.blocks, text_of_window)


def _windows(texts: Texts, window: int) -> tuple[Texts, Tensor]:
    """Windows of about equal length, each between the text's own first and last token; and whose they are."""
    lengths, starts = texts.lengths, texts.offsets[:-1]
    inner = (lengths - 2).clamp(min=0)  # tokens between [CLS] and [SEP]
    counts = torch.where(lengths > window, -(-inner // (window - 2)), torch.ones_like(lengths))
    text = torch.arange(len(texts), device=lengths.device).repeat_interleave(counts)  # (W,)
    number = torch.arange(text.numel(), device=text.device) - (counts.cumsum(0) - counts)[text]
    begin = number * inner[text] // counts[text]
    sizes = (number + 1) * inner[text] // counts[text] - begin + lengths[text].clamp(max=2)
    offsets = torch.zeros(text.numel() + 1, dtype=torch.int64, device=text.device)
    torch.cumsum(sizes, 0, out=offsets[1:])
    place = torch.arange(int(offsets[-1]), device=text.device) - offsets[:-1].repeat_interleave(sizes)
    owner, size = text.repeat_interleave(sizes), sizes.repeat_interleave(sizes)
    source = starts[owner] + begin.repeat_interleave(sizes) + place
    source = torch.where(place == 0, starts[owner], source)
    source = torch.where(place == size - 1, starts[owner] + lengths[owner] - 1, source)
    return Texts(texts.tokens[source], offsets), text


def _blocks(lengths: Tensor) -> list[Block]:
    blocks, text, token = [], 0, 0
    values, counts = torch.unique_consecutive(lengths, return_counts=True)
    for length, count in zip(values.tolist(), counts.tolist(), strict=True):
        size = count * length
        blocks.append(Block(slice(text, text + count), slice(token, token + size), count, length))
        text, token = text + count, token + size
    return blocks
