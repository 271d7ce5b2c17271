"""Multi-head attention within each of many short texts (Eq. 1 to 3) and over virtual tokens (Eq. 5).

Why by hand: titles are a dozen tokens long, and ``scaled_dot_product_attention`` on the CPU takes twice
the time of plain batched products at that length (and cannot use its fast kernel with dropout at all).
Working block by block, with weights computed again in the backward pass, nothing the size of the
attention matrix outlives its block.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from heterformer.models.dropout import keep_mask, keep_scale
from heterformer.models.packing import Block

CHUNK = 2**19  # numbers in a chunk's largest array: 2 MB, which stays in the processor's cache


def attend(
    query: Tensor, key_value: Tensor, virtual: Tensor | None, blocks: list[Block], heads: int, dropout: float
) -> Tensor:
    """Each token's mixture of its text's values, (T, d).

    ``query``: (T, d). ``key_value``: (T, 2d), keys beside values. ``virtual``: (U, V, 2d), further keys
    and values that all tokens of a text see.
    """
    result: Tensor = BlockAttention.apply(query, key_value, virtual, blocks, heads, dropout)  # type: ignore[no-untyped-call]
    return result


def attend_to_states(
    query: Tensor, states: Tensor, virtual: Tensor | None, blocks: list[Block], dropout: float
) -> tuple[Tensor, Tensor]:
    """Each query's mixture of its text's ``states`` themselves, and the total of its attention weights.

    ``query``: (U, H, d), scaled. ``states``: (T, d). ``virtual``: (U, V, d), further states of each text.
    """
    mixtures, totals = [query[:0]], [query[:0, :, 0]]
    queries = torch.split(query, [block.size for block in blocks])
    rectangles = torch.split(states, [block.size * block.length for block in blocks])
    for block, q, h in zip(blocks, queries, rectangles, strict=True):
        h = h.view(block.size, block.length, -1)  # (n, L, d)
        if virtual is not None:
            h = torch.cat([h, virtual[block.texts]], 1)
        weights = torch.softmax(torch.bmm(q, h.mT), -1)  # (n, H, L)
        if dropout:
            weights = weights * (keep_mask(weights, dropout) * keep_scale(dropout))
        mixtures.append(torch.bmm(weights, h))  # (n, H, d)
        totals.append(weights.sum(-1))
    return torch.cat(mixtures), torch.cat(totals)


class BlockAttention(torch.autograd.Function):
    """See ``attend``."""

    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        key_value: Tensor,
        virtual: Tensor | None,
        blocks: list[Block],
        heads: int,
        dropout: float,
    ) -> Tensor:
        output = torch.empty_like(query)
        kept = []
        for block in _chunks(blocks, query.shape[1]):
            q = _split_heads(query[block.tokens], block.size, heads)[0]  # (nH, L, d/H)
            k, v = _keys_values(key_value, virtual, block, heads)  # (nH, L + V, d/H)
            weights = _weights(q, k)  # (nH, L, L + V)
            if dropout:
                kept.append(keep_mask(weights, dropout))
                weights.mul_(kept[-1]).mul_(keep_scale(dropout))
            _join_heads(torch.bmm(weights, v), output[block.tokens], block.size)
        ctx.save_for_backward(query, key_value, virtual, output, *kept)
        ctx.blocks, ctx.heads, ctx.dropout = blocks, heads, dropout
        return output

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        query, key_value, virtual, output, *kept = ctx.saved_tensors
        grad_query, grad_key_value = torch.empty_like(query), torch.empty_like(key_value)
        grad_virtual = None if virtual is None else torch.empty_like(virtual)
        for i, block in enumerate(_chunks(ctx.blocks, query.shape[1])):
            q, g, o = (
                _split_heads(x[block.tokens], block.size, ctx.heads)[0] for x in (query, grads[0], output)
            )
            k, v = _keys_values(key_value, virtual, block, ctx.heads)
            p = _weights(q, k)
            grad_p = torch.bmm(g, v.mT)  # (nH, L, L + V)
            dropped = p
            if ctx.dropout:
                mask = kept[i] * keep_scale(ctx.dropout)
                grad_p, dropped = grad_p.mul_(mask), p * mask
            grad_kv = torch.empty((2, *k.shape), dtype=k.dtype, device=k.device)
            torch.bmm(dropped.mT, g, out=grad_kv[1])
            # Through the softmax: p (dL/dp - sum(p dL/dp)); the sum is the product of output and gradient.
            grad_scores = grad_p.sub_((g * o).sum(-1, keepdim=True)).mul_(p).mul_(q.shape[-1] ** -0.5)
            torch.bmm(grad_scores.mT, q, out=grad_kv[0])
            _join_heads(torch.bmm(grad_scores, k), grad_query[block.tokens], block.size)
            _join_keys_values(grad_kv, grad_key_value, grad_virtual, block)
        return grad_query, grad_key_value, grad_virtual, None, None, None


def _chunks(blocks: list[Block], width: int) -> Iterator[Block]:
    """Blocks cut into pieces that fit the cache."""
    for texts, tokens, count, length in blocks:
        step = max(1, CHUNK // (length * width * 2))
        for i in range(0, count, step):
            n = min(step, count - i)
            text, token = texts.start + i, tokens.start + i * length
            yield Block(slice(text, text + n), slice(token, token + n * length), n, length)


def _weights(q: Tensor, k: Tensor) -> Tensor:
    """softmax(q k / sqrt(d/H)), Eq. 2."""
    scores = torch.empty(q.shape[0], q.shape[1], k.shape[1], dtype=q.dtype, device=q.device)
    torch.baddbmm(scores, q, k.mT, beta=0, alpha=q.shape[-1] ** -0.5, out=scores)
    return torch.softmax(scores, -1)


def _split_heads(x: Tensor, count: int, heads: int, parts: int = 1) -> Tensor:
    """(nL, parts * d) to (parts, nH, L, d/H)."""
    x = x.view(count, -1, parts, heads, x.shape[-1] // (parts * heads))
    return x.permute(2, 0, 3, 1, 4).reshape(parts, count * heads, -1, x.shape[-1])


def _join_heads(x: Tensor, out: Tensor, count: int) -> None:
    """(nH, L, d/H) into the rows ``out``, (nL, d)."""
    x = x.view(count, -1, *x.shape[1:]).transpose(1, 2)  # (n, L, H, d/H)
    out.view(x.shape).copy_(x)


def _keys_values(key_value: Tensor, virtual: Tensor | None, block: Block, heads: int) -> Tensor:
    """(2, nH, L + V, d/H): the block's own keys and values, then the virtual ones (Eq. 4)."""
    own = _split_heads(key_value[block.tokens], block.size, heads, parts=2)
    if virtual is None:
        return own
    return torch.cat([own, _split_heads(virtual[block.texts], block.size, heads, parts=2)], dim=2)


def _join_keys_values(
    grad: Tensor, grad_key_value: Tensor, grad_virtual: Tensor | None, block: Block
) -> None:
    """The way back of ``_keys_values``."""
    n, length = block.size, block.length
    grad = grad.view(2, n, -1, *grad.shape[2:]).permute(1, 3, 0, 2, 4)  # (n, L + V, 2, H, d/H)
    own = grad[:, :length]
    grad_key_value[block.tokens].view(own.shape).copy_(own)
    if grad_virtual is not None:
        grad_virtual[block.texts].copy_(grad[:, length:].flatten(2))
