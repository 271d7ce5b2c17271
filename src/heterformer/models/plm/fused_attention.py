"""The attention of ``models/plm/attention.py`` by PyTorch's fused kernels, for GPUs.

Texts of all lengths go through one variable-length kernel, as nested tensors without padding. A bias of the
scores, which that kernel does not take, is a mask of one call for each length of text.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from heterformer.models.plm.packing import Block


def attend_fused(
    qkv: Tensor,
    virtual: Tensor | None,
    blocks: list[Block],
    heads: int,
    dropout: float,
    bias: Tensor | None = None,
    rotation: tuple[Tensor, Tensor] | None = None,
) -> Tensor:
    """(T, d): what ``attend`` gives."""
    if not len(qkv):
        return qkv[:, : qkv.shape[1] // 3]
    query, key, value = qkv.view(len(qkv), 3, heads, -1).unbind(1)  # (T, H, d/H)
    virtual_key = virtual_value = None
    if virtual is not None:
        virtual_key, virtual_value = virtual.view(*virtual.shape[:2], 2, heads, -1).unbind(
            2
        )  # (U, V, H, d/H)
    if rotation is not None:
        query, key, virtual_key = _rotated(query, key, virtual_key, blocks, rotation)
    by_block = _by_block if bias is not None else _nested
    mixture = by_block(query, key, value, virtual_key, virtual_value, blocks, dropout, bias)  # (T, H, d/H)
    return mixture.flatten(1)


def _rotated(
    query: Tensor,
    key: Tensor,
    virtual_key: Tensor | None,
    blocks: list[Block],
    rotation: tuple[Tensor, Tensor],
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Queries and keys turned by their places.

    A virtual token meets queries that are not turned. One product serves both if heads are twice as wide: a
    query has both forms side by side, a key one of them, and zeros in the place of the other.
    """
    places = torch.cat([torch.arange(b.length, device=query.device).repeat(b.size) for b in blocks])
    cos, sin = (part[places][:, None] for part in rotation)  # (T, 1, d/H)

    def turned(x: Tensor) -> Tensor:
        left, right = x.chunk(2, -1)
        return (x * cos + torch.cat([-right, left], -1) * sin).to(x.dtype)

    if virtual_key is None:
        return turned(query), turned(key), None
    both = torch.cat([turned(query), query], -1)
    return both, F.pad(turned(key), (0, key.shape[-1])), F.pad(virtual_key, (virtual_key.shape[-1], 0))


def _nested(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    virtual_key: Tensor | None,
    virtual_value: Tensor | None,
    blocks: list[Block],
    dropout: float,
    bias: Tensor | None = None,
) -> Tensor:
    """All texts at once. Without a bias alone."""
    sizes = torch.tensor([b.size for b in blocks], device=query.device)
    lengths = torch.tensor([b.length for b in blocks], device=query.device).repeat_interleave(sizes)  # (U,)
    offsets = F.pad(lengths.cumsum(0), (1, 0))
    key_offsets, extra = offsets, 0
    shortest, longest = (bound(b.length for b in blocks) for bound in (min, max))
    if virtual_key is not None and virtual_value is not None:
        extra = virtual_key.shape[1]
        key_offsets = offsets + extra * torch.arange(len(offsets), device=offsets.device)
        order = _behind_texts(lengths, key_offsets, extra)
        key = torch.cat([key, virtual_key.flatten(0, 1)])[order]
        value = torch.cat([value, virtual_value.flatten(0, 1)])[order]

    def jagged(rows: Tensor, starts: Tensor, added: int) -> Tensor:
        ends = {
            "min_seqlen": shortest + added,
            "max_seqlen": longest + added,
        }  # which a GPU need not be asked
        made = torch.nested.nested_tensor_from_jagged(rows.contiguous(), starts, **ends)  # type: ignore[arg-type]
        return made.transpose(1, 2)

    mixture = F.scaled_dot_product_attention(
        jagged(query, offsets, 0),
        jagged(key, key_offsets, extra),
        jagged(value, key_offsets, extra),
        dropout_p=dropout,
        scale=1.0,  # queries are scaled
    )
    return mixture.transpose(1, 2).values()


def _behind_texts(lengths: Tensor, key_offsets: Tensor, extra: int) -> Tensor:
    """(T + U * extra,): the keys of each text and then its virtual ones, if those of all texts come first."""
    tokens, texts = int(lengths.sum()), len(lengths)
    order = torch.empty(tokens + texts * extra, dtype=torch.int64, device=lengths.device)
    text = torch.arange(texts, device=lengths.device)
    order[torch.arange(tokens, device=lengths.device) + extra * text.repeat_interleave(lengths)] = (
        torch.arange(tokens, device=lengths.device)
    )
    places = (key_offsets[1:] - extra)[:, None] + torch.arange(extra, device=lengths.device)
    order[places.flatten()] = tokens + torch.arange(texts * extra, device=lengths.device)
    return order


def _by_block(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    virtual_key: Tensor | None,
    virtual_value: Tensor | None,
    blocks: list[Block],
    dropout: float,
    bias: Tensor | None = None,
) -> Tensor:
    """The texts of each length in a call of their own, which takes the bias of their scores."""
    assert bias is not None
    mixtures = []
    for block in blocks:
        shape = (block.size, block.length)
        q, k, v = (x[block.tokens].view(*shape, *x.shape[1:]) for x in (query, key, value))  # (n, L, H, d/H)
        if virtual_key is not None and virtual_value is not None:
            k = torch.cat([k, virtual_key[block.texts]], 1)
            v = torch.cat([v, virtual_value[block.texts]], 1)
        own = bias[:, : block.length, : block.length]
        mask = F.pad(own, (0, k.shape[1] - block.length)).to(q.dtype)  # (H or 1, L, L + V)
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))  # (n, H, L, d/H)
        mixture = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout, scale=1.0)
        mixtures.append(mixture.transpose(1, 2).flatten(0, 1))
    return torch.cat(mixtures)
