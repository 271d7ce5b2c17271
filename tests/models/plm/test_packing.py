from __future__ import annotations

import itertools
import math

import pytest
import torch

from heterformer.batches.batch import Texts
from heterformer.models.plm.packing import pack, rounded_up
from tests.models.random_batches import random_batch

TEXTS = Texts(
    torch.tensor([10, 20, 21, 22, 30, 40, 41, 42]), torch.tensor([0, 1, 4, 5, 8])
)  # lengths 1 3 1 3


def test_shortest_first_and_back() -> None:
    packing = pack(TEXTS)
    assert packing.texts.tokens.tolist() == [10, 30, 20, 21, 22, 40, 41, 42]
    assert packing.texts.tokens[packing.first_token][packing.rank].tolist() == [10, 20, 30, 40]
    assert packing.positions().tolist() == [0, 0, 0, 1, 2, 0, 1, 2]
    assert [(b.size, b.length) for b in packing.blocks] == [(2, 1), (2, 3)]
    assert [b.tokens for b in packing.blocks] == [slice(0, 2), slice(2, 8)]


def test_a_choice_with_repetitions() -> None:
    packing = pack(TEXTS, torch.tensor([3, 0, 3]))
    assert packing.texts.tokens.tolist() == [10, 40, 41, 42, 40, 41, 42]
    assert packing.texts.tokens[packing.first_token][packing.rank].tolist() == [40, 10, 40]


def test_mean_over_each_text() -> None:
    packing = pack(TEXTS)
    hidden = packing.texts.tokens[:, None].float()
    assert packing.mean(hidden)[packing.rank].flatten().tolist() == [10, 21, 30, 41]


def test_in_half_precision_filler_tokens_follow_the_texts() -> None:
    texts = pack(TEXTS).texts
    with torch.autocast("cpu", torch.bfloat16):
        packing = pack(Texts(TEXTS.tokens[:5], TEXTS.offsets[:4]))
    assert packing.texts.tokens.tolist() == [10, 30, 20, 21, 22, 0, 0, 0]
    assert packing.texts.lengths.tolist() == [1, 1, 3]
    assert packing.positions().tolist() == [0, 0, 0, 1, 2, 0, 0, 0]
    hidden = torch.full((8, 1), float("nan"))
    hidden[:5, 0] = torch.tensor([1.0, 2.0, 3.0, 4.0, 8.0])
    assert packing.mean(hidden).flatten().tolist() == [1, 2, 5]
    assert len(texts.tokens) == 8  # in single precision there are none


@pytest.mark.parametrize("rows", [0, 1, 8, 100, 1000, 1025, 6000, 100_001])
def test_rounding_up_adds_at_most_an_eighth(rows: int) -> None:
    assert rows <= rounded_up(rows) <= max(8, rows * 1.125)
    assert rounded_up(rounded_up(rows)) == rounded_up(rows)


def windows_by_hand(text: list[int], window: int) -> list[list[int]]:
    if len(text) <= window:
        return [text]
    inner = text[1:-1]
    count = math.ceil(len(inner) / (window - 2))
    cuts = [i * len(inner) // count for i in range(count + 1)]
    return [[text[0], *inner[a:b], text[-1]] for a, b in itertools.pairwise(cuts)]


@pytest.mark.parametrize("window", [3, 4, 7, 11])
def test_windows(window: int) -> None:
    generator = torch.Generator().manual_seed(window)
    rows = [torch.randint(2, 90, (n,), generator=generator).tolist() for n in (1, 30, 11, 2, 12, 3, 0)]
    lengths = torch.tensor([len(row) for row in rows])
    texts = Texts(
        torch.tensor([*itertools.chain.from_iterable(rows)]),
        torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)]),
    )
    packing = pack(texts, window=window)
    assert packing.text_of_window is not None
    parts = [part.tolist() for part in packing.texts.tokens.split(packing.texts.lengths.tolist())]
    found: dict[int, list[list[int]]] = {}
    for owner, part in zip(packing.text_of_window.tolist(), parts, strict=True):
        assert len(part) <= window
        found.setdefault(owner, []).append(part)
    expected = {i: windows_by_hand(row, window) for i, row in enumerate(rows)}
    assert {i: sorted(each) for i, each in found.items()} == {i: sorted(w) for i, w in expected.items()}
    states = torch.randn(len(parts), 5, generator=generator)
    average = packing.average_windows(states)
    for i in range(len(rows)):
        torch.testing.assert_close(average[i], states[packing.text_of_window == i].mean(0))
    of_texts = torch.randn(len(rows), 2, 3)
    assert torch.equal(packing.each_window(of_texts)[0], of_texts[packing.text_of_window[0]])


def test_no_windows_where_none_are_needed() -> None:
    texts = random_batch(0).texts
    whole, same = pack(texts), pack(texts, window=12)
    assert same.text_of_window is None
    assert torch.equal(same.texts.tokens, whole.texts.tokens)
