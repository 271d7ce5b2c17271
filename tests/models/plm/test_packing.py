from __future__ import annotations

import torch

from heterformer.batches.batch import Texts
from heterformer.models.plm.packing import pack

TEXTS = Texts(
    torch.tensor([10, 20, 21, 22, 30, 40, 41, 42]), torch.tensor([0, 1, 4, 5, 8])
)  # lengths 1 3 1 3


def test_shortest_first_and_back() -> None:
    packing = pack(TEXTS)
    assert packing.texts.tokens.tolist() == [10, 30, 20, 21, 22, 40, 41, 42]
    assert packing.texts.tokens[packing.first][packing.rank].tolist() == [10, 20, 30, 40]
    assert packing.positions().tolist() == [0, 0, 0, 1, 2, 0, 1, 2]
    assert [(b.size, b.length) for b in packing.blocks] == [(2, 1), (2, 3)]
    assert [b.tokens for b in packing.blocks] == [slice(0, 2), slice(2, 8)]


def test_a_choice_with_repetitions() -> None:
    packing = pack(TEXTS, torch.tensor([3, 0, 3]))
    assert packing.texts.tokens.tolist() == [10, 40, 41, 42, 40, 41, 42]
    assert packing.texts.tokens[packing.first][packing.rank].tolist() == [40, 10, 40]


def test_mean_over_each_text() -> None:
    packing = pack(TEXTS)
    hidden = packing.texts.tokens[:, None].float()
    assert packing.mean(hidden)[packing.rank].flatten().tolist() == [10, 21, 30, 41]
