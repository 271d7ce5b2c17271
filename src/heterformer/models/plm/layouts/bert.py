"""BERT's layers, which RoBERTa, XLM-R, ELECTRA and most older encoders have, too."""

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


class BertLayout(Layout):
    """Learnt positions, normalisation behind each part of a layer."""

    @staticmethod
    def layers_of(plm: Any) -> Sequence[Any]:
        return plm.encoder.layer  # type: ignore[no-any-return]

    @staticmethod
    def max_tokens(plm: Any) -> int:
        return int(plm.config.max_position_embeddings) - first_position(plm)

    def embed(self) -> Tensor:
        plm, embeddings = self.plm, self.plm.embeddings
        token_type = embeddings.token_type_embeddings.weight[0]
        hidden = position_embedded(embeddings, self.packing, first_position(plm), token_type)  # (T, e)
        if hasattr(plm, "embeddings_project"):  # ELECTRA's embeddings can be narrower than its layers
            return plm.embeddings_project(hidden)  # type: ignore[no-any-return]  # (T, d)
        return hidden

    def projections(self, depth: int) -> tuple[Projection, Projection, Projection]:
        attention = self.layers[depth].attention.self
        return projection(attention.query), projection(attention.key), projection(attention.value)

    def attention_dropout(self, depth: int) -> float:
        return dropout_of(self.layers[depth].attention.self)

    def outputs(self, depth: int, hidden: Tensor, mixture: Tensor) -> Tensor:
        layer = self.layers[depth]
        attended, mlp = layer.attention.output, layer.output
        hidden = dropped(attended.dense(mixture), dropout_of(attended), residual=hidden)
        hidden = attended.LayerNorm(hidden)  # LN(H + MHA(H, H~))
        inner, activation = layer.intermediate.dense, layer.intermediate.intermediate_act_fn
        outer = dropped(feed_forward(hidden, inner, activation, mlp.dense), dropout_of(mlp), residual=hidden)
        result: Tensor = mlp.LayerNorm(outer)  # LN(H' + MLP(H'))
        return result


def first_position(plm: Any) -> int:
    """0, but RoBERTa counts positions from behind its padding index."""
    padding = getattr(plm.embeddings, "padding_idx", None)
    return 0 if padding is None else int(padding) + 1
