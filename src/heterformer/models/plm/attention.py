"""Multi-head attention within each of many short texts (Eq. 1 to 3) and over virtual tokens (Eq. 5).

Why by hand on the CPU: titles are a dozen tokens long, and ``scaled_dot_product_attention`` takes twice the
time of plain batched products at that length there (and cannot use its fast kernel with dropout at all).
Work proceeds by rectangles of equally long texts, each small enough for the processor's cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from heterformer.models.plm.dropout import keep_mask, keep_scale
from heterformer.models.plm.fused_attention import attend_fused
from heterformer.models.plm.packing import Block

CHUNK = 2**19  # numbers in the largest array of a chunk: 2 MB
VECTOR = 16  # torch.softmax takes six times as long for rows shorter than a vector register


class Positions(NamedTuple):
    """How scores depend on where query and key stand in their text. Virtual tokens stand nowhere."""

    bias: Tensor | None = None  # (H or 1, N, N): added to the scores, from query to key; N at least as long
    rotation: tuple[Tensor, Tensor] | None = None  # cosines and sines, (N, d/H), by which both are turned


NO_POSITIONS = Positions()


def has_fused_attention(device: torch.device) -> bool:
    """Whether PyTorch's own kernels for texts of different lengths are the faster ones."""
    return device.type == "cuda"


def attend(
    qkv: Tensor,
    virtual: Tensor | None,
    blocks: list[Block],
    heads: int,
    dropout: float,
    positions: Positions = NO_POSITIONS,
    chunk_size: int = CHUNK,
) -> Tensor:
    """Each token's mixture of its text's values, (T, d).

    ``qkv``: (T, 3d), queries (scaled), keys and values side by side. ``virtual``: (U, V, 2d), further keys
    and values that all tokens of a text see. ``chunk_size``: numbers in the largest array of a chunk.
    """
    bias, rotation = positions
    if has_fused_attention(qkv.device):
        return attend_fused(qkv, virtual, blocks, heads, dropout, bias, rotation)
    arguments = (qkv, virtual, bias, rotation, blocks, heads, dropout, chunk_size)
    mixture: Tensor = BlockAttention.apply(*arguments)  # type: ignore[no-untyped-call]
    return mixture


def attend_to_states(
    query: Tensor,
    states: Tensor,
    virtual: Tensor | None,
    blocks: list[Block],
    dropout: float,
    bias: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Each query's mixture of its text's ``states`` themselves, and the total of its attention weights.

    ``query``: (U, H, d), scaled. ``states``: (T, d). ``virtual``: (U, V, d), further states of each text.
    ``bias``: (H, N, N), added to the scores of a text's tokens; the queries stand first.
    """
    mixtures, totals = [query[:0]], [query[:0, :, 0]]
    queries = torch.split(query, [block.size for block in blocks])
    rectangles = torch.split(states, [block.size * block.length for block in blocks])
    for block, q, h in zip(blocks, queries, rectangles, strict=True):
        h = h.view(block.size, block.length, -1)  # (n, L, d)
        if virtual is not None:
            h = torch.cat([h, virtual[block.texts]], 1)
        scores = torch.bmm(q, h.mT)  # (n, H, L)
        if bias is not None:
            scores = scores + F.pad(bias[:, 0, : block.length], (0, h.shape[1] - block.length))
        weights = torch.softmax(scores, -1)
        if dropout:
            weights = weights * (keep_mask(weights, dropout) * keep_scale(dropout))
        mixtures.append(torch.bmm(weights, h))  # (n, H, d)
        totals.append(weights.sum(-1))
    return torch.cat(mixtures), torch.cat(totals)


def attend_from_first(
    query: Tensor,
    kv: Tensor,
    virtual: Tensor | None,
    blocks: list[Block],
    heads: int,
    dropout: float,
    positions: Positions,
) -> Tensor:
    """(U, d): ``attend`` of the first tokens alone. ``query``: (U, d), scaled. ``kv``: (T, 2d)."""
    mixtures = [query[:0]]
    for block in blocks:
        q = _split_heads(query[block.texts], block.size, heads, 1)[0]  # (nH, 1, d/H)
        k, v = _split_heads(kv[block.tokens], block.size, heads, 2)  # (nH, L, d/H)
        if virtual is not None:
            extra = _split_heads(virtual[block.texts], block.size, heads, 2)
            k, v = torch.cat([k, extra[0]], 1), torch.cat([v, extra[1]], 1)
        weights = torch.softmax(position_scores(q, k, block.length, positions), -1)
        if dropout:
            weights = weights * (keep_mask(weights, dropout) * keep_scale(dropout))
        mixtures.append(torch.bmm(weights, v).view(block.size, -1))
    return torch.cat(mixtures)


def position_scores(q: Tensor, k: Tensor, length: int, positions: Positions) -> Tensor:
    """The scores before the softmax of Eq. 2, of keys (nH, L + V, d/H) for the first Q queries of L.

    The score of a virtual token is that of content alone, wherever the query stands.
    """
    bias, rotation = positions
    if rotation is None:
        scores = torch.bmm(q, k.mT)  # (nH, Q, L + V)
    else:
        scores = torch.bmm(turned(q, rotation), turned(k[:, :length], rotation).mT)
        scores = torch.cat([scores, torch.bmm(q, k[:, length:].mT)], -1)
    if bias is not None:
        bias = F.pad(bias[:, : q.shape[1], :length], (0, k.shape[1] - length)).to(scores.dtype)
        scores = (scores.view(-1, *bias.shape) + bias).flatten(0, 1)
    return scores


def turned(x: Tensor, rotation: tuple[Tensor, Tensor], back: bool = False) -> Tensor:
    """Rows (…, L, d/H) turned by the angles of their places, or turned back."""
    cos, sin = (part[: x.shape[-2]] for part in rotation)
    left, right = x.chunk(2, -1)
    across = torch.cat([right, -left] if back else [-right, left], -1)
    return (x * cos + across * sin).to(x.dtype)


class BlockAttention(torch.autograd.Function):
    """See ``attend``. Keeps the heads' own queries, keys and values instead of ``qkv``."""

    @staticmethod
    def forward(
        ctx: Any,
        qkv: Tensor,
        virtual: Tensor | None,
        bias: Tensor | None,
        rotation: tuple[Tensor, Tensor] | None,
        blocks: list[Block],
        heads: int,
        dropout: float,
        chunk_size: int,
    ) -> Tensor:
        output = torch.empty(qkv.shape[0], qkv.shape[1] // 3, dtype=qkv.dtype, device=qkv.device)
        saved: list[Tensor | None] = []
        positions = Positions(bias, rotation)
        for block in _chunks(blocks, qkv.shape[1], chunk_size):
            q, kv = _queries_keys_values(qkv, virtual, block, heads)
            weights = _weights(q, kv[0], positions)  # (nH, L, L + V)
            keep = keep_mask(weights, dropout) if dropout else None
            mixture = torch.bmm(weights if keep is None else weights * keep, kv[1])  # (nH, L, d/H)
            mixture = mixture if keep is None else mixture.mul_(keep_scale(dropout))
            _join_heads(mixture, output[block.tokens], block.size)
            # Long texts' weights would take more memory than all else together; they are computed again.
            saved += [q, kv, weights if block.length <= q.shape[-1] else None, keep]
        ctx.save_for_backward(output, bias, *saved)
        ctx.blocks, ctx.heads, ctx.dropout, ctx.rotation = blocks, heads, dropout, rotation
        ctx.chunk_size = chunk_size
        ctx.virtual = None if virtual is None else virtual.shape
        return output

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (grad,) = grads
        output, bias, *saved = ctx.saved_tensors
        positions = Positions(bias, ctx.rotation)
        grad_qkv = torch.empty(grad.shape[0], 3 * grad.shape[1], dtype=grad.dtype, device=grad.device)
        grad_virtual = None if ctx.virtual is None else grad.new_empty(ctx.virtual)
        grad_bias = torch.zeros_like(bias) if ctx.needs_input_grad[2] else None
        # Through the softmax p: dL/ds = p (dL/dp - sum(p dL/dp)), and that sum is output times gradient.
        sums = (grad * output).view(len(grad), ctx.heads, grad.shape[1] // ctx.heads).sum(-1)  # (T, H)
        for i, block in enumerate(_chunks(ctx.blocks, grad_qkv.shape[1], ctx.chunk_size)):
            q, kv, weights, keep = saved[4 * i : 4 * i + 4]
            g = _split_heads(grad[block.tokens], block.size, ctx.heads, 1)[0]  # (nH, L, d/H)
            weights = _weights(q, kv[0], positions) if weights is None else weights
            sums_of_block = _split_heads(sums[block.tokens], block.size, ctx.heads, 1)[0]  # (nH, L, 1)
            if keep is not None:
                g = g * keep_scale(ctx.dropout)
            grad_p = torch.bmm(g, kv[1].mT)  # (nH, L, L + V)
            grad_p = grad_p if keep is None else grad_p.mul_(keep)
            grad_s = grad_p.sub_(sums_of_block).mul_(weights)
            if grad_bias is not None:
                own = grad_s.view(block.size, ctx.heads, *grad_s.shape[1:])[..., : block.length]
                grad_bias[:, : block.length, : block.length] += own.sum(0)  # (H, L, L)
            grad_kv = torch.empty_like(kv)
            grad_q = _score_gradients(grad_s, q, kv[0], grad_kv[0], ctx.rotation)
            torch.bmm((weights if keep is None else weights * keep).mT, g, out=grad_kv[1])
            _join_gradients(grad_q, grad_kv, grad_qkv, grad_virtual, block)
        return grad_qkv, grad_virtual, grad_bias, None, None, None, None, None


def _score_gradients(
    grad_s: Tensor, q: Tensor, k: Tensor, grad_k: Tensor, rotation: tuple[Tensor, Tensor] | None
) -> Tensor:
    """The queries' gradients; those of the keys go into ``grad_k``."""
    if rotation is None:
        torch.bmm(grad_s.mT, q, out=grad_k)
        return torch.bmm(grad_s, k)
    length = q.shape[1]
    own, virtual = grad_s[..., :length], grad_s[..., length:]
    grad_k[:, :length] = turned(torch.bmm(own.mT, turned(q, rotation)), rotation, back=True)
    grad_k[:, length:] = torch.bmm(virtual.mT, q)
    grad_q = turned(torch.bmm(own, turned(k[:, :length], rotation)), rotation, back=True)
    return grad_q.add_(torch.bmm(virtual, k[:, length:]))


def _chunks(blocks: list[Block], width: int, chunk_size: int) -> Iterator[Block]:
    """Blocks cut into pieces that fit the cache."""
    for texts, tokens, size, length in blocks:
        step = max(1, chunk_size // (length * width))
        for i in range(0, size, step):
            n = min(step, size - i)
            text, token = texts.start + i, tokens.start + i * length
            yield Block(slice(text, text + n), slice(token, token + n * length), n, length)


def _weights(q: Tensor, k: Tensor, positions: Positions) -> Tensor:
    """The softmax of Eq. 2, in the type of its inputs also where mixed precision would widen it."""
    scores = position_scores(q, k, q.shape[1], positions)
    if scores.shape[-1] >= VECTOR:
        return torch.softmax(scores, -1).to(q.dtype)
    scores = scores.sub_(scores.amax(-1, keepdim=True)).exp_()
    return scores.div_(scores.sum(-1, keepdim=True))


def _split_heads(x: Tensor, texts: int, heads: int, parts: int) -> Tensor:
    """(nL, parts * d) to (parts, nH, L, d/H)."""
    x = x.view(texts, -1, parts, heads, x.shape[-1] // (parts * heads))
    return x.permute(2, 0, 3, 1, 4).reshape(parts, texts * heads, -1, x.shape[-1])


def _join_heads(x: Tensor, out: Tensor, texts: int) -> None:
    """(nH, L, d/H) into the rows ``out``, (nL, d)."""
    x = x.view(texts, -1, *x.shape[1:]).transpose(1, 2)  # (n, L, H, d/H)
    out.view(x.shape).copy_(x)


def _queries_keys_values(
    qkv: Tensor, virtual: Tensor | None, block: Block, heads: int
) -> tuple[Tensor, Tensor]:
    """(nH, L, d/H) and (2, nH, L + V, d/H): the virtual keys and values come after the text's own (Eq. 4)."""
    # Of a single text the heads would be a view, for whose sake the backward pass keeps all of ``qkv``.
    own = _split_heads(qkv[block.tokens], block.size, heads, 3).contiguous()
    if virtual is None:
        return own[0], own[1:]
    return own[0], torch.cat([own[1:], _split_heads(virtual[block.texts], block.size, heads, 2)], dim=2)


def _join_gradients(
    grad_q: Tensor, grad_kv: Tensor, grad_qkv: Tensor, grad_virtual: Tensor | None, block: Block
) -> None:
    """The way back of ``_queries_keys_values``."""
    n, length = block.size, block.length
    grad_q = grad_q.view(n, -1, *grad_q.shape[1:]).transpose(1, 2)  # (n, L, H, d/H)
    grad_kv = grad_kv.view(2, n, -1, *grad_kv.shape[2:]).permute(1, 3, 0, 2, 4)  # (n, L + V, 2, H, d/H)
    out = grad_qkv[block.tokens].view(n, length, 3, *grad_q.shape[2:])
    out[:, :, 0].copy_(grad_q)
    out[:, :, 1:].copy_(grad_kv[:, :length])
    if grad_virtual is not None:
        grad_virtual[block.texts].copy_(grad_kv[:, length:].flatten(2))
