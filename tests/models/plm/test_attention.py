from __future__ import annotations

import itertools

import pytest
import torch
import torch.nn.functional as F

from heterformer.batches.batch import Texts
from heterformer.models.plm.attention import Positions, attend, attend_from_first, attend_to_states, turned
from heterformer.models.plm.packing import Packing, pack

HEADS, WIDTH = 2, 6
CHUNK = 60  # so that a block has several chunks
PAIRS = 3  # heads of two numbers each, which a rotation turns


def packing_of(*lengths: int) -> Packing:
    offsets = torch.tensor([0, *lengths]).cumsum(0)
    return pack(Texts(torch.zeros(int(offsets[-1]), dtype=torch.int64), offsets))


def inputs(packing: Packing, virtual: int) -> tuple[torch.Tensor, ...]:
    texts, tokens = len(packing.texts), packing.texts.tokens.numel()
    shapes = [(tokens, 3 * WIDTH), (texts, virtual, 2 * WIDTH)]
    return tuple(torch.randn(s, dtype=torch.float64, requires_grad=True) for s in shapes)


@pytest.mark.parametrize("multiple", [1, 4])  # without and with padding
@pytest.mark.parametrize("virtual", [0, 2])
def test_equals_attention_text_by_text(virtual: int, multiple: int) -> None:
    packing = packing_of(3, 1, 3, 5, 6, 2, 4)
    qkv, extra = inputs(packing, virtual)
    output = attend(qkv, extra if virtual else None, packing.blocks, HEADS, 0.0, multiple=multiple)
    for u, (start, stop) in enumerate(itertools.pairwise(packing.texts.offsets.tolist())):
        query, key_value = qkv[start:stop].split([WIDTH, 2 * WIDTH], dim=1)
        key, value = torch.cat([key_value, extra[u]]).chunk(2, dim=1)
        q, k, v = (x.reshape(-1, HEADS, WIDTH // HEADS).transpose(0, 1) for x in (query, key, value))
        expected = F.scaled_dot_product_attention(q, k, v, scale=1.0).transpose(0, 1).flatten(1)
        torch.testing.assert_close(output[start:stop], expected)


@pytest.mark.parametrize("multiple", [1, 4])
@pytest.mark.parametrize("virtual", [0, 2])
@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_gradients(virtual: int, dropout: float, multiple: int) -> None:
    packing = packing_of(3, 1, 3, 3, 2, 7)  # weights of texts up to the head size, 3, are kept
    qkv, extra = inputs(packing, virtual)

    def function(*tensors: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(0)  # the same numbers dropped each time
        extra = tensors[1] if virtual else None
        return attend(tensors[0], extra, packing.blocks, HEADS, dropout, chunk_size=CHUNK, multiple=multiple)

    assert torch.autograd.gradcheck(function, (qkv, extra) if virtual else (qkv,))


def positions(length: int) -> Positions:
    """A learnt bias with a key out of sight, and a rotation."""
    bias = torch.randn(PAIRS, length, length, dtype=torch.float64)
    bias[:, 2:, 0] = float("-inf")
    angle = torch.randn(length, WIDTH // PAIRS // 2, dtype=torch.float64).repeat(1, 2)
    return Positions(bias.requires_grad_(), (angle.cos(), angle.sin()))


@pytest.mark.parametrize("multiple", [1, 4])
@pytest.mark.parametrize("virtual", [0, 2])
def test_positions(virtual: int, multiple: int) -> None:
    """Between tokens of a text they matter; virtual tokens have none."""
    packing, heads = packing_of(3, 1, 3, 5), PAIRS
    qkv, extra = inputs(packing, virtual)
    where = positions(8)
    assert where.bias is not None
    assert where.rotation is not None
    output = attend(qkv, extra if virtual else None, packing.blocks, heads, 0.0, where, multiple=multiple)
    query, key_value = qkv.split([WIDTH, 2 * WIDTH], dim=1)
    first = attend_from_first(
        query[packing.first_token], key_value, extra if virtual else None, packing.blocks, heads, 0.0, where
    )
    for u, (start, stop) in enumerate(itertools.pairwise(packing.texts.offsets.tolist())):
        n = stop - start
        q, k, v = qkv[start:stop].view(n, 3, heads, 2).permute(1, 2, 0, 3)  # (H, n, d/H)
        extra_k, extra_v = extra[u].view(virtual, 2, heads, 2).permute(1, 2, 0, 3)  # (H, V, d/H)
        own = turned(q, where.rotation) @ turned(k, where.rotation).mT + where.bias[:, :n, :n]
        weights = torch.softmax(torch.cat([own, q @ extra_k.mT], -1), -1)
        expected = (weights @ torch.cat([v, extra_v], 1)).transpose(0, 1).flatten(1)
        torch.testing.assert_close(output[start:stop], expected)
        torch.testing.assert_close(first[u], expected[0])


@pytest.mark.parametrize("multiple", [1, 4])
@pytest.mark.parametrize("virtual", [0, 2])
@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_gradients_through_positions(virtual: int, dropout: float, multiple: int) -> None:
    packing = packing_of(3, 1, 3, 3, 2, 7)
    qkv, extra = inputs(packing, virtual)
    where = positions(8)
    seen = where.bias.detach() if where.bias is not None else torch.zeros(0)
    learnt = torch.where(seen.isinf(), 0.0, seen).requires_grad_()

    def function(*tensors: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(0)
        bias = tensors[1] + torch.where(seen.isinf(), seen, 0.0)
        extra = tensors[2] if virtual else None
        placed = Positions(bias, where.rotation)
        return attend(tensors[0], extra, packing.blocks, PAIRS, dropout, placed, CHUNK, multiple)

    assert torch.autograd.gradcheck(function, (qkv, learnt, extra) if virtual else (qkv, learnt))


def test_turning_depends_on_the_distance_alone() -> None:
    angle = torch.arange(9, dtype=torch.float64)[:, None] * torch.tensor([[0.3, 0.7, 0.3, 0.7]])
    rotation = (angle.cos(), angle.sin())
    q, k = (torch.randn(4, dtype=torch.float64).expand(9, 4) for _ in range(2))
    scores = turned(q, rotation) @ turned(k, rotation).mT
    for distance in range(-8, 9):
        diagonal = scores.diagonal(distance)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal))
    torch.testing.assert_close(turned(turned(q, rotation), rotation, back=True), q)


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


def test_rows_behind_the_texts_are_of_no_text() -> None:
    packing = packing_of(3, 1, 5)
    qkv, extra = inputs(packing, 2)
    filled = torch.cat([qkv.detach(), torch.full((4, 3 * WIDTH), float("nan"), dtype=qkv.dtype)])
    filled.requires_grad_()
    for multiple in (1, 4):
        output = attend(filled, extra, packing.blocks, HEADS, 0.0, multiple=multiple)
        torch.testing.assert_close(output[:9], attend(qkv, extra, packing.blocks, HEADS, 0.0))
        assert not output[9:].any()
        (gradient,) = torch.autograd.grad(output[:9].sum(), filled)
        assert not gradient[9:].any()
        assert gradient[:9].isfinite().all()
