"""DistilBERT: BERT's layers without token types, under names of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from heterformer.models.plm.dropout import dropped
from heterformer.models.plm.feed_forward import feed_forward
from heterformer.models.plm.layouts.layout import (
    Layout,
    Projection,
    dropout_of,
    position_embedded,
    projection,
)


class DistilBertLayout(Layout):
    """Learnt positions, normalisation behind each part of a layer, no dropout behind the attention."""

    @staticmethod
    def layers_of(plm: Any) -> Sequence[Any]:
        return plm.transformer.layer  # type: ignore[no-any-return]

    def embed(self) -> Tensor:
        return position_embedded(self.plm.embeddings, self.packing)

    def projections(self, depth: int) -> tuple[Projection, Projection, Projection]:
        attention = self.layers[depth].attention
        return projection(attention.q_lin), projection(attention.k_lin), projection(attention.v_lin)

    def attention_dropout(self, depth: int) -> float:
        return dropout_of(self.layers[depth].attention)

    def outputs(self, depth: int, hidden: Tensor, mixture: Tensor) -> Tensor:
        layer = self.layers[depth]
        hidden = layer.sa_layer_norm(layer.attention.out_lin(mixture) + hidden)  # LN(H + MHA(H, H~))
        outer = feed_forward(hidden, layer.ffn.lin1, layer.ffn.activation, layer.ffn.lin2)
        outer = dropped(outer, dropout_of(layer.ffn), residual=hidden)
        result: Tensor = layer.output_layer_norm(outer)  # LN(H' + MLP(H'))
        return result
