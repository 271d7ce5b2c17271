"""Multi-head attention within each of many short texts (Eq. 1 to 3) and over virtual tokens (Eq. 5).

Why by hand on the CPU: titles are a dozen tokens long, and ``scaled_dot_product_attention`` takes twice the
time of plain batched products at that length there (and cannot use its fast kernel with dropout at all).
Work proceeds by rectangles of texts, each small enough for the processor's cache: of equally long texts in
single precision; of similarly long ones, padded, in half precision, where products of a new shape are slow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from heterformer.models.plm.dropout import keep_mask, keep_scale
from heterformer.models.plm.fused_attention import attend_fused
from heterformer.models.plm.packing import Block
from heterformer.models.plm.rectangles import Rectangle, rectangles

CHUNK = 2**19  # numbers in the largest array of a chunk: 2 MB
PADDED = 8  # in half precision lengths and numbers of texts are multiples of it, so that shapes occur again
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
    multiple: int | None = None,
) -> Tensor:
    """Each token's mixture of its text's values, (T, d).

    ``qkv``: (T, 3d), queries (scaled), keys and values side by side. ``virtual``: (U, V, 2d), further keys
    and values that all tokens of a text see. ``chunk_size``: numbers in the largest array of a chunk.
    ``multiple``: texts are padded to multiples of it in length and number; by default as suits the precision.
    Rows of ``qkv`` behind the texts are filler tokens, whose mixture is 0.
    """
    bias, rotation = positions
    if has_fused_attention(qkv.device):
        return attend_fused(qkv, virtual, blocks, heads, dropout, bias, rotation)
    if multiple is None:
        multiple = PADDED if qkv.dtype.itemsize == 2 else 1
    pieces = rectangles(blocks, chunk_size // qkv.shape[1], multiple)
    arguments = (qkv, virtual, bias, rotation, pieces, heads, dropout)
    mixture: Tensor = RectangleAttention.apply(*arguments)  # type: ignore[no-untyped-call]
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
    by_block = torch.split(states[: _tokens(blocks)], [block.size * block.length for block in blocks])
    for block, q, h in zip(blocks, queries, by_block, strict=True):
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


class RectangleAttention(torch.autograd.Function):
    """See ``attend``. Keeps the heads' own queries, keys and values instead of ``qkv``."""

    @staticmethod
    def forward(
        ctx: Any,
        qkv: Tensor,
        virtual: Tensor | None,
        bias: Tensor | None,
        rotation: tuple[Tensor, Tensor] | None,
        pieces: list[Rectangle],
        heads: int,
        dropout: float,
    ) -> Tensor:
        output = qkv.new_empty(qkv.shape[0], qkv.shape[1] // 3)
        output[_tokens(pieces) :] = 0
        saved: list[Tensor | None] = []
        positions = Positions(bias, rotation)
        for piece in pieces:
            q, kv = _queries_keys_values(qkv, virtual, piece, heads)
            weights = _weights(q, kv[0], positions, piece)  # (nH, L, L + V)
            keep = keep_mask(weights, dropout) if dropout else None
            mixture = torch.bmm(weights if keep is None else weights * keep, kv[1])  # (nH, L, d/H)
            mixture = mixture if keep is None else mixture.mul_(keep_scale(dropout))
            with piece.writing(output) as rows:  # (n L, d)
                joined = _join_heads(mixture, piece.size)
                rows.view(joined.shape).copy_(joined)
            # Long texts' weights would take more memory than all else together; they are computed again.
            saved += [q, kv, weights if piece.length <= q.shape[-1] else None, keep]
        ctx.save_for_backward(output, bias, *saved)
        ctx.pieces, ctx.heads, ctx.dropout, ctx.rotation = pieces, heads, dropout, rotation
        ctx.virtual = None if virtual is None else virtual.shape
        return output

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (grad,) = grads
        output, bias, *saved = ctx.saved_tensors
        positions = Positions(bias, ctx.rotation)
        grad_qkv = grad.new_empty(grad.shape[0], 3 * grad.shape[1])
        grad_qkv[_tokens(ctx.pieces) :] = 0
        grad_virtual = None if ctx.virtual is None else grad.new_empty(ctx.virtual)
        grad_bias = torch.zeros_like(bias) if ctx.needs_input_grad[2] else None
        # Through the softmax p: dL/ds = p (dL/dp - sum(p dL/dp)), and that sum is output times gradient.
        sums = (grad * output).view(len(grad), ctx.heads, grad.shape[1] // ctx.heads).sum(-1)  # (T, H)
        for i, piece in enumerate(ctx.pieces):
            q, kv, weights, keep = saved[4 * i : 4 * i + 4]
            # Rows of padding are 0, so that it adds nothing to any gradient.
            g = _split_heads(piece.read(grad, zeros=True), piece.size, ctx.heads, 1)[0]  # (nH, L, d/H)
            weights = _weights(q, kv[0], positions, piece) if weights is None else weights
            sums_of_piece = _split_heads(piece.read(sums, zeros=True), piece.size, ctx.heads, 1)[0]
            if keep is not None:
                g = g * keep_scale(ctx.dropout)
            grad_p = torch.bmm(g, kv[1].mT)  # (nH, L, L + V)
            grad_p = grad_p if keep is None else grad_p.mul_(keep)
            grad_s = grad_p.sub_(sums_of_piece).mul_(weights)
            if grad_bias is not None:
                own = grad_s.view(piece.size, ctx.heads, *grad_s.shape[1:])[..., : piece.length]
                grad_bias[:, : piece.length, : piece.length] += own.sum(0)  # (H, L, L)
            grad_kv = torch.empty_like(kv)
            grad_q = _score_gradients(grad_s, q, kv[0], grad_kv[0], ctx.rotation)
            torch.bmm((weights if keep is None else weights * keep).mT, g, out=grad_kv[1])
            _join_gradients(grad_q, grad_kv, grad_qkv, grad_virtual, piece)
        return grad_qkv, grad_virtual, grad_bias, None, None, None, None


def _tokens(parts: Sequence[Block] | Sequence[Rectangle]) -> int:
    """The number of tokens of the texts; filler tokens follow them."""
    return parts[-1].tokens.stop if parts else 0


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


def _weights(q: Tensor, k: Tensor, positions: Positions, piece: Rectangle) -> Tensor:
    """The softmax of Eq. 2, in the type of its inputs also where mixed precision would widen it."""
    scores = position_scores(q, k, q.shape[1], positions)
    if piece.masked is not None:
        by_text = scores.view(piece.size, -1, *scores.shape[1:])  # (n, H, L, L + V)
        by_text[..., : piece.length].masked_fill_(piece.masked, float("-inf"))
    if scores.shape[-1] >= VECTOR:
        return torch.softmax(scores, -1).to(q.dtype)
    scores = scores.sub_(scores.amax(-1, keepdim=True)).exp_()
    return scores.div_(scores.sum(-1, keepdim=True))


def _split_heads(x: Tensor, texts: int, heads: int, parts: int) -> Tensor:
    """(nL, parts * d) to (parts, nH, L, d/H)."""
    x = x.view(texts, -1, parts, heads, x.shape[-1] // (parts * heads))
    return x.permute(2, 0, 3, 1, 4).reshape(parts, texts * heads, -1, x.shape[-1])


def _join_heads(x: Tensor, texts: int) -> Tensor:
    """(nH, L, d/H) to (n, L, H, d/H), a view."""
    return x.view(texts, -1, *x.shape[1:]).transpose(1, 2)


def _queries_keys_values(
    qkv: Tensor, virtual: Tensor | None, piece: Rectangle, heads: int
) -> tuple[Tensor, Tensor]:
    """(nH, L, d/H) and (2, nH, L + V, d/H): the virtual keys and values come after the text's own (Eq. 4)."""
    own = piece.read(qkv).view(piece.size, piece.length, 3, heads, -1)
    # Of a single text the heads would be a view, for whose sake the backward pass keeps all of ``qkv``.
    q = own[:, :, 0].transpose(1, 2).contiguous().view(-1, piece.length, own.shape[-1])
    if virtual is None:
        kv = own[:, :, 1:].permute(2, 0, 3, 1, 4).contiguous()  # (2, n, H, L, d/H)
    else:
        extra = piece.read_texts(virtual).view(piece.size, -1, 2, heads, own.shape[-1])
        kv = qkv.new_empty(2, piece.size, heads, piece.length + extra.shape[1], own.shape[-1])
        kv[..., : piece.length, :].copy_(own[:, :, 1:].permute(2, 0, 3, 1, 4))
        kv[..., piece.length :, :].copy_(extra.permute(2, 0, 3, 1, 4))
    return q, kv.flatten(1, 2)


def _join_gradients(
    grad_q: Tensor, grad_kv: Tensor, grad_qkv: Tensor, grad_virtual: Tensor | None, piece: Rectangle
) -> None:
    """The way back of ``_queries_keys_values``."""
    n, length = piece.size, piece.length
    grad_q = _join_heads(grad_q, n)  # (n, L, H, d/H)
    grad_kv = grad_kv.view(2, n, -1, *grad_kv.shape[2:]).permute(1, 3, 0, 2, 4)  # (n, L + V, 2, H, d/H)
    with piece.writing(grad_qkv) as rows:  # (n L, 3d)
        own = rows.view(n, length, 3, *grad_q.shape[2:])
        own[:, :, 0].copy_(grad_q)
        own[:, :, 1:].copy_(grad_kv[:, :length])
    if grad_virtual is not None:
        texts = piece.texts.stop - piece.texts.start
        grad_virtual[piece.texts].copy_(grad_kv[:texts, length:].flatten(2))
