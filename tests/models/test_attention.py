from __future__ import annotations

import itertools

import pytest
import torch
import torch.nn.functional as F

from heterformer.batches.batch import Texts
from heterformer.models import attention
from heterformer.models.attention import attend, attend_to_states
from heterformer.models.packing import Packing, pack

HEADS, WIDTH = 2, 6


def packing_of(*lengths: int) -> Packing:
    offsets = torch.tensor([0, *lengths]).cumsum(0)
    return pack(Texts(torch.zeros(int(offsets[-1]), dtype=torch.int64), offsets))


def inputs(packing: Packing, virtual: int) -> tuple[torch.Tensor, ...]:
    texts, tokens = len(packing.texts), packing.texts.tokens.numel()
    shapes = [(tokens, WIDTH), (tokens, 2 * WIDTH), (texts, virtual, 2 * WIDTH)]
    return tuple(torch.randn(s, dtype=torch.float64, requires_grad=True) for s in shapes)


@pytest.mark.parametrize("virtual", [0, 2])
def test_equals_attention_text_by_text(virtual: int) -> None:
    packing = packing_of(3, 1, 3, 5)
    query, key_value, extra = inputs(packing, virtual)
    output = attend(query, key_value, extra if virtual else None, packing.blocks, HEADS, 0.0)
    for u, (start, stop) in enumerate(itertools.pairwise(packing.texts.offsets.tolist())):
        keys, values = torch.cat([key_value[start:stop], extra[u]]).chunk(2, dim=1)
        q, k, v = (
            x.view(-1, HEADS, WIDTH // HEADS).transpose(0, 1) for x in (query[start:stop], keys, values)
        )
        expected = F.scaled_dot_product_attention(q, k, v).transpose(0, 1).flatten(1)
        torch.testing.assert_close(output[start:stop], expected)


@pytest.mark.parametrize("virtual", [0, 2])
@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_gradients(virtual: int, dropout: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "CHUNK", 30)  # several chunks per block
    packing = packing_of(3, 1, 3, 3, 2)
    query, key_value, extra = inputs(packing, virtual)

    def function(*tensors: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(0)  # the same numbers dropped each time
        return attend(tensors[0], tensors[1], tensors[2] if virtual else None, packing.blocks, HEADS, dropout)

    tensors = (query, key_value, extra) if virtual else (query, key_value)
    assert torch.autograd.gradcheck(function, tensors)


@pytest.mark.parametrize("virtual", [0, 2])
def test_states_are_keys_and_values(virtual: int) -> None:
    packing = packing_of(3, 1, 3, 5)
    query, states = torch.randn(4, HEADS, WIDTH), torch.randn(12, WIDTH)
    extra = torch.randn(4, virtual, WIDTH)
    mixture, totals = attend_to_states(query, states, extra if virtual else None, packing.blocks, 0.0)
    torch.testing.assert_close(totals, torch.ones(4, HEADS))
    for u, (start, stop) in enumerate(itertools.pairwise(packing.texts.offsets.tolist())):
        h = torch.cat([states[start:stop], extra[u]])
        torch.testing.assert_close(mixture[u], torch.softmax(query[u] @ h.T, -1) @ h)


def test_dropout_keeps_the_mean() -> None:
    packing = packing_of(*[7] * 400)
    query, key_value, _ = (x.detach() for x in inputs(packing, 0))
    key_value[:, WIDTH:] = 1.0
    torch.manual_seed(0)
    output = attend(query, key_value, None, packing.blocks, HEADS, 0.3)
    assert abs(float(output.mean()) - 1) < 0.02
    assert float(output.std()) > 0.1
    query = torch.zeros(400, HEADS, WIDTH, dtype=torch.float64)
    states, totals = attend_to_states(query, key_value[:, WIDTH:], None, packing.blocks, 0.3)
    assert abs(float(totals.mean()) - 1) < 0.02
    torch.testing.assert_close(states[:, :, 0], totals)
