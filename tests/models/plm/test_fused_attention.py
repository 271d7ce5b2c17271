"""PyTorch's fused attention gives what ours does; on the CPU, where its kernels have slower forms."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from heterformer.models.plm import attention
from heterformer.models.plm.attention import Positions, attend, has_fused_attention
from heterformer.models.plm.fused_attention import attend_fused
from heterformer.models.plm.layouts import LAYOUTS
from heterformer.models.plm.packing import Block
from tests.models.random_batches import new_model, random_batch, save_backbone

HEADS, WIDTH, VIRTUAL = 2, 16, 2
pytestmark = pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")


def blocks(*sizes: tuple[int, int]) -> list[Block]:
    made, text, token = [], 0, 0
    for size, length in sizes:
        made.append(Block(slice(text, text + size), slice(token, token + size * length), size, length))
        text, token = text + size, token + size * length
    return made


LENGTHS = blocks((2, 1), (3, 4), (1, 9))
TEXTS, TOKENS, LONGEST = 6, 23, 9


def random(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()


def positions(bias: bool, rotation: bool) -> tuple[Tensor | None, tuple[Tensor, Tensor] | None]:
    angles = torch.arange(LONGEST)[:, None] * torch.tensor([1.0, 0.3, 0.05, 0.01] * 2, dtype=torch.float64)
    turned = (angles.cos(), angles.sin())
    return random(HEADS, LONGEST, LONGEST, seed=3) if bias else None, turned if rotation else None


@pytest.mark.parametrize(
    ("bias", "rotation", "virtual"), [*itertools.product((False, True), (False, True), (False, True))]
)
def test_equals_ours(bias: bool, rotation: bool, virtual: bool) -> None:
    """Forward and gradients of everything that has some."""
    results = []
    for way in (_ours, attend_fused):
        qkv = random(TOKENS, 3 * WIDTH)
        extra = random(TEXTS, VIRTUAL, 2 * WIDTH, seed=1) if virtual else None
        own_bias, turned = positions(bias, rotation)
        mixture = way(qkv, extra, LENGTHS, HEADS, 0.0, own_bias, turned)
        (mixture * random(TOKENS, WIDTH, seed=2).detach()).sum().backward()
        inputs = [x for x in (qkv, extra, own_bias) if x is not None]
        results.append([mixture.detach(), *(x.grad for x in inputs)])
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, atol=1e-10, rtol=0)


def _ours(
    qkv: Tensor,
    virtual: Tensor | None,
    texts: list[Block],
    heads: int,
    dropout: float,
    bias: Tensor | None,
    rotation: tuple[Tensor, Tensor] | None,
) -> Tensor:
    return attend(qkv, virtual, texts, heads, dropout, Positions(bias, rotation))


@pytest.mark.parametrize("bias", [False, True])
def test_a_window_of_keys(bias: bool) -> None:
    """ModernBERT's local layers: minus infinity where a key is too far away, one bias for all heads."""
    far = (torch.arange(LONGEST)[:, None] - torch.arange(LONGEST)).abs() > 2
    window = torch.zeros(far.shape, dtype=torch.float64).masked_fill(far, float("-inf"))[None]
    arguments = (
        random(TOKENS, 3 * WIDTH),
        random(TEXTS, VIRTUAL, 2 * WIDTH, seed=1),
        LENGTHS,
        HEADS,
        0.0,
        window,
    )
    rotation = positions(False, bias)[1]
    torch.testing.assert_close(attend_fused(*arguments, rotation), _ours(*arguments, rotation))


@pytest.mark.parametrize("readout", ["cls", "mean"])
@pytest.mark.parametrize("family", ["bert", *LAYOUTS])
def test_a_model_on_fused_attention(
    family: str, readout: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With each layout's positions, where the device is said to have it: vectors and all gradients."""
    model = new_model("heterformer", save_backbone(tmp_path, family), readout=readout).double()
    calls = []

    def counted(*arguments: Any) -> Tensor:
        calls.append(arguments)
        return attend_fused(*arguments)

    monkeypatch.setattr(attention, "attend_fused", counted)
    results = []
    for fused in (False, True):
        monkeypatch.setattr(attention, "has_fused_attention", lambda device, fused=fused: fused)
        model.zero_grad()
        vectors = model.encode_batch(random_batch(3))
        vectors.sin().sum().backward()  # type: ignore[no-untyped-call]
        assert bool(calls) is fused
        results.append({n: p.grad.to_dense() for n, p in model.named_parameters() if p.grad is not None})
        results[-1]["vectors"] = vectors.detach()
    assert results[0].keys() == results[1].keys()
    for name, expected in results[0].items():
        torch.testing.assert_close(results[1][name], expected, atol=1e-9, rtol=1e-9, msg=name)


@pytest.mark.parametrize("bias", [False, True])
def test_dropout(bias: bool) -> None:
    """It is drawn anew, and the mean over many draws is what there is without."""
    qkv, own_bias = random(TOKENS, 3 * WIDTH), positions(bias, False)[0]

    def mixture(dropout: float) -> Tensor:
        return attend_fused(qkv, None, LENGTHS, HEADS, dropout, own_bias).detach()

    torch.manual_seed(0)
    draws = torch.stack([mixture(0.3) for _ in range(400)])
    assert not torch.equal(draws[0], draws[1])
    assert (draws.mean(0) - mixture(0.0)).abs().mean() < 0.05
    torch.manual_seed(0)
    assert torch.equal(mixture(0.3), draws[0])


def test_no_texts() -> None:
    assert attend_fused(random(0, 3 * WIDTH), None, [], HEADS, 0.0).shape == (0, WIDTH)


def test_in_half_precision() -> None:
    qkv, extra = (x.detach().bfloat16() for x in (random(TOKENS, 3 * WIDTH), random(TEXTS, 2, 2 * WIDTH)))
    for own_bias in (None, positions(True, False)[0]):
        found = attend_fused(qkv, extra, LENGTHS, HEADS, 0.0, own_bias)
        assert found.dtype == torch.bfloat16
        exact = attend_fused(qkv.double(), extra.double(), LENGTHS, HEADS, 0.0, own_bias)
        torch.testing.assert_close(found.double(), exact, atol=0.05, rtol=0)


def test_the_device_decides() -> None:
    chosen: Callable[[str], bool] = lambda name: has_fused_attention(torch.device(name))  # noqa: E731
    assert [chosen(name) for name in ("cpu", "cuda", "meta", "mps")] == [False, True, False, False]
