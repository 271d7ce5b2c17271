"""MPNet: BERT's layers with a bias of the scores by relative position, the same in all layers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from heterformer.models.plm.attention import Positions
from heterformer.models.plm.dropout import dropped
from heterformer.models.plm.feed_forward import feed_forward
from heterformer.models.plm.layouts.bert import first_position
from heterformer.models.plm.layouts.layout import (
    Layout,
    Projection,
    dropout_of,
    position_embedded,
    projection,
)


class MPNetLayout(Layout):
    """Learnt absolute and relative positions; a virtual token has no bias."""

    @staticmethod
    def layers_of(plm: Any) -> Sequence[Any]:
        return plm.encoder.layer  # type: ignore[no-any-return]

    @staticmethod
    def max_tokens(plm: Any) -> int:
        return int(plm.config.max_position_embeddings) - first_position(plm)

    def embed(self) -> Tensor:
        return position_embedded(self.plm.embeddings, self.packing, first_position(self.plm))

    def projections(self, depth: int) -> tuple[Projection, Projection, Projection]:
        attention = self.layers[depth].attention.attn
        return projection(attention.q), projection(attention.k), projection(attention.v)

    def attention_dropout(self, depth: int) -> float:
        return dropout_of(self.layers[depth].attention.attn)

    def positions(self, depth: int) -> Positions:
        return self._positions

    @cached_property
    def _positions(self) -> Positions:
        device = self.packing.texts.tokens.device
        (bias,) = self.plm.encoder.compute_position_bias(torch.empty(1, self.longest, 0, device=device))
        return Positions(bias)  # (H, longest, longest)

    def outputs(self, depth: int, hidden: Tensor, mixture: Tensor) -> Tensor:
        layer = self.layers[depth]
        attended, mlp = layer.attention, layer.output
        hidden = dropped(attended.attn.o(mixture), dropout_of(attended), residual=hidden)
        hidden = attended.LayerNorm(hidden)  # LN(H + MHA(H, H~))
        inner, activation = layer.intermediate.dense, layer.intermediate.intermediate_act_fn
        outer = dropped(feed_forward(hidden, inner, activation, mlp.dense), dropout_of(mlp), residual=hidden)
        result: Tensor = mlp.LayerNorm(outer)  # LN(H' + MLP(H'))
        return result
