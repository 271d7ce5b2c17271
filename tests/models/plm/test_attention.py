from __future__ import annotations

import itertools

import pytest
import torch
import torch.nn.functional as F

from heterformer.batches.batch import Texts
from heterformer.models.plm import attention
from heterformer.models.plm.attention import attend, attend_to_states
from heterformer.models.plm.packing import Packing, pack

HEADS, WIDTH = 2, 6


def packing_of(*lengths: int) -> Packing:
    offsets = torch.tensor([0, *lengths]).cumsum(0)
    return pack(Texts(torch.zeros(int(offsets[-1]), dtype=torch.int64), offsets))


def inputs(packing: Packing, virtual: int) -> tuple[torch.Tensor, ...]:
    texts, tokens = len(packing.texts), packing.texts.tokens.numel()
    shapes = [(tokens, 3 * WIDTH), (texts, virtual, 2 * WIDTH)]
    return tuple(torch.randn(s, dtype=torch.float64, requires_grad=True) for s in shapes)


@pytest.mark.parametrize("virtual", [0, 2])
def test_equals_attention_text_by_text(virtual: int) -> None:
    packing = packing_of(3, 1, 3, 5)
    qkv, extra = inputs(packing, virtual)
    output = attend(qkv, extra if virtual else None, packing.blocks, HEADS, 0.0)
    for u, (start, stop) in enumerate(itertools.pairwise(packing.texts.offsets.tolist())):
        query, key_value = qkv[start:stop].split([WIDTH, 2 * WIDTH], dim=1)
        key, value = torch.cat([key_value, extra[u]]).chunk(2, dim=1)
        q, k, v = (x.reshape(-1, HEADS, WIDTH // HEADS).transpose(0, 1) for x in (query, key, value))
        expected = F.scaled_dot_product_attention(q, k, v, scale=1.0).transpose(0, 1).flatten(1)
        torch.testing.assert_close(output[start:stop], expected)


@pytest.mark.parametrize("virtual", [0, 2])
@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_gradients(virtual: int, dropout: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "CHUNK", 60)  # several chunks per block
    packing = packing_of(3, 1, 3, 3, 2, 7)  # weights of texts up to the head size, 3, are kept
    qkv, extra = inputs(packing, virtual)

    def function(*tensors: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(0)  # the same numbers dropped each time
        return attend(tensors[0], tensors[1] if virtual else None, packing.blocks, HEADS, dropout)

    assert torch.autograd.gradcheck(function, (qkv, extra) if virtual else (qkv,))


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
    qkv = inputs(packing, 0)[0].detach()
    qkv[:, 2 * WIDTH :] = 1.0
    torch.manual_seed(0)
    output = attend(qkv, None, packing.blocks, HEADS, 0.3)
    assert abs(float(output.mean()) - 1) < 0.02
    assert float(output.std()) > 0.1
    query = torch.zeros(400, HEADS, WIDTH, dtype=torch.float64)
    states, totals = attend_to_states(query, qkv[:, 2 * WIDTH :], None, packing.blocks, 0.3)
    assert abs(float(totals.mean()) - 1) < 0.02
    torch.testing.assert_close(states[:, :, 0], totals)


def test_a_text_alone_of_its_length_keeps_no_others() -> None:
    packing = packing_of(3, 3, 3, 5)
    qkv, _ = inputs(packing, 0)
    kept = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        attend(qkv, None, packing.blocks, HEADS, 0.0)
    weights = 8 * HEADS * 3 * 3 * 3  # those of the longer text are computed again
    assert sum(kept.values()) == 8 * 14 * (3 * WIDTH + WIDTH) + weights
