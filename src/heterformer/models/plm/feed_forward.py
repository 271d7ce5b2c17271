"""The MLP of a Transformer layer (Eq. 5), a few rows at a time.

Between its two linear maps an MLP is four times as wide as the layer. Only the numbers before the
activation are kept for the backward pass; the activated ones and their gradients exist for one chunk of
rows, which fits the processor's cache.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

ROWS = 1024  # that fit the processor's cache

Activation = Callable[[Tensor], Tensor]


def feed_forward(
    x: Tensor, first: nn.Linear, activation: Activation, second: nn.Linear, rows_at_once: int = ROWS
) -> Tensor:
    """``second(activation(first(x)))``, (T, d) to (T, d); a gated activation halves the width."""
    if torch.compiler.is_compiling():  # which decides by itself what to keep
        return F.linear(activation(F.linear(x, first.weight, first.bias)), second.weight, second.bias)
    arguments = (x, first.weight, first.bias, second.weight, second.bias, activation, rows_at_once)
    result: Tensor = _FeedForward.apply(*arguments)  # type: ignore[no-untyped-call]
    return result


class _FeedForward(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        w1: Tensor,
        b1: Tensor | None,
        w2: Tensor,
        b2: Tensor | None,
        activation: Activation,
        rows_at_once: int,
    ) -> Tensor:
        inner = F.linear(x, w1, b1)  # (T, 4d)
        ctx.save_for_backward(x, inner, w1, w2)
        ctx.activation, ctx.rows_at_once = activation, rows_at_once
        parts = torch.split(inner, rows_at_once)
        return torch.cat([F.linear(activation(part), w2, b2) for part in parts])  # (T, d)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, inner, w1, w2 = ctx.saved_tensors
        (grad,) = grads
        x, w1, w2 = (t.to(grad.dtype) for t in (x, w1, w2))  # the same, but under mixed precision
        _, learns_w1, learns_b1, learns_w2, learns_b2, *_ = ctx.needs_input_grad
        grad_x = torch.empty_like(x)
        grad_w1 = torch.zeros_like(w1) if learns_w1 else None
        grad_w2 = torch.zeros_like(w2) if learns_w2 else None
        grad_b1 = grad.new_zeros(len(w1)) if learns_b1 else None
        grad_b2 = grad.sum(0) if learns_b2 else None
        for i in range(0, len(x), ctx.rows_at_once):
            rows = slice(i, i + ctx.rows_at_once)
            with torch.enable_grad():
                part = inner[rows].detach().requires_grad_()
                activated = ctx.activation(part)
            (grad_inner,) = torch.autograd.grad(activated, part, grad[rows] @ w2)
            if grad_w2 is not None:
                grad_w2.addmm_(grad[rows].mT, activated.detach())
            if grad_w1 is not None:
                grad_w1.addmm_(grad_inner.mT, x[rows])
            if grad_b1 is not None:
                grad_b1 += grad_inner.sum(0)
            torch.mm(grad_inner, w1, out=grad_x[rows])
        return grad_x, grad_w1, grad_b1, grad_w2, grad_b2, None, None
