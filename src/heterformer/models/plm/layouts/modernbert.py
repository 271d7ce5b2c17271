"""ModernBERT: normalisation first, rotary positions, GeGLU, and layers that look at a window only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from heterformer.models.plm.attention import Positions, attend_from_first
from heterformer.models.plm.dropout import dropped
from heterformer.models.plm.feed_forward import feed_forward
from heterformer.models.plm.layouts.layout import Layout, Projection
from heterformer.models.plm.packing import Packing


class ModernBertLayout(Layout):
    """A virtual token is normalised as the others, is not turned, and is inside of every window."""

    def __init__(self, plm: Any, packing: Packing) -> None:
        super().__init__(plm, packing)
        self._positions: dict[str, Positions] = {}

    @staticmethod
    def layers_of(plm: Any) -> Sequence[Any]:
        return plm.layers  # type: ignore[no-any-return]

    def embed(self) -> Tensor:
        embeddings = self.plm.embeddings
        hidden = embeddings.norm(embeddings.tok_embeddings(self.packing.texts.tokens))
        return dropped(hidden, _dropout(embeddings.drop))

    def attention_input(self, depth: int, states: Tensor) -> Tensor:
        return self.layers[depth].attn_norm(states)  # type: ignore[no-any-return]

    def projections(self, depth: int) -> tuple[Projection, Projection, Projection]:
        together = self.layers[depth].attn.Wqkv
        weights = together.weight.chunk(3)
        biases = (None,) * 3 if together.bias is None else together.bias.chunk(3)
        query, key, value = (Projection(w, b) for w, b in zip(weights, biases, strict=True))
        return query, key, value

    def attention_dropout(self, depth: int) -> float:
        attention = self.layers[depth].attn
        return float(attention.attention_dropout) if attention.training else 0.0

    def positions(self, depth: int) -> Positions:
        kind = self.layers[depth].attention_type
        if kind not in self._positions:
            places = torch.arange(self.longest, device=self.packing.texts.tokens.device)
            cos, sin = self.plm.rotary_emb(self.plm.final_norm.weight, places[None], kind)
            window = self._window(places) if kind == "sliding_attention" else None
            self._positions[kind] = Positions(window, (cos[0], sin[0]))  # (longest, d/H)
        return self._positions[kind]

    def _window(self, places: Tensor) -> Tensor | None:
        """(1, longest, longest): minus infinity where a key is too far away; nothing if none is."""
        radius = self.plm.config.sliding_window
        if len(places) <= radius + 1:
            return None
        far = (places[:, None] - places).abs() > radius
        return torch.zeros(far.shape, device=far.device).masked_fill(far, float("-inf"))[None]

    def attention_of_first(self, depth: int, first: Tensor, states: Tensor, virtual: Tensor | None) -> Tensor:
        """(U, d): keys are turned by their places, so that the query cannot be taken to the states."""
        query, key, value = self.projections(depth)
        weight = torch.cat([key.weight, value.weight])
        bias = None if key.bias is None or value.bias is None else torch.cat([key.bias, value.bias])
        return attend_from_first(
            F.linear(first, *query) * self.head_size**-0.5,
            F.linear(states, weight, bias),
            None if virtual is None else F.linear(virtual, weight, bias),
            self.packing.blocks,
            self.heads,
            self.attention_dropout(depth),
            self.positions(depth),
        )

    def outputs(self, depth: int, hidden: Tensor, mixture: Tensor) -> Tensor:
        layer = self.layers[depth]
        hidden = dropped(layer.attn.Wo(mixture), _dropout(layer.attn.out_drop), residual=hidden)
        hidden = hidden + self._mlp(layer.mlp, layer.mlp_norm(hidden))  # H' + MLP(LN(H'))
        if depth == len(self.layers) - 1:
            return self.plm.final_norm(hidden)  # type: ignore[no-any-return]
        return hidden

    def _mlp(self, mlp: Any, states: Tensor) -> Tensor:
        if _dropout(mlp.drop):  # which would have to be drawn the same in the backward pass
            return mlp(states)  # type: ignore[no-any-return]

        def gated(inner: Tensor) -> Tensor:
            kept, gate = inner.chunk(2, -1)
            return mlp.act(kept) * gate  # type: ignore[no-any-return]

        return feed_forward(states, mlp.Wi, gated, mlp.Wo)


def _dropout(module: Any) -> float:
    """Of ``nn.Dropout``, or of ``nn.Identity`` in its place."""
    return float(getattr(module, "p", 0.0)) if module.training else 0.0
