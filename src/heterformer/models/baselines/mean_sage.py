"""MeanSAGE: no PLM at all, TF-IDF bags of words averaged over text-rich neighbours."""

from __future__ import annotations

from collections.abc import Collection

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel
from transformers import initialization as init

from heterformer.arrays import Ints
from heterformer.batches.batch import Texts
from heterformer.models.baselines.bert_mean_sage import MeanAggregator
from heterformer.models.baselines.tf_idf import TfIdf
from heterformer.models.configuration import NodeEncoderConfig
from heterformer.models.options import MeanSageOptions
from heterformer.network.tokens import PackedTokens

# E's entries start small, so that Adam's steps at the rate of textless tables soon turn its rows, and the
# product is made larger: a vector starts about sqrt(d) / 4 long, which scores without temperature need.
SPREAD, GAIN = 0.02, 12.5


class MeanSageConfig(NodeEncoderConfig):
    """MeanSAGE's options. Of the backbone it uses the tokenizer and the width."""

    options_class = MeanSageOptions


class MeanSage(MeanAggregator):
    """GraphSAGE (Hamilton et al., 2017) on TF-IDF vectors ``x``: ``W_1 E^T x_i + W_2 mean_j E^T x_j + b``.

    Homogeneous. Differs from BERT+MeanSAGE in what reads a text: ``E`` starts as a random projection,
    which keeps the angles between bags of words, and is a table learnt from scratch. Its rate is therefore
    that of the textless tables, ``textless_learning_rate``.
    """

    config_class = MeanSageConfig

    def add_inputs(self) -> None:
        tokens = self.config.backbone_config.vocab_size
        self.words = TfIdf(tokens, min(self.config.vocabulary, tokens), self.width)

    @property
    def width(self) -> int:
        return int(self.config.vector_width or self.config.backbone_config.hidden_size)

    def prepare(
        self, tokens: PackedTokens, special_tokens: Collection[int], hidden_texts: Ints | None = None
    ) -> None:
        self.words.fit(tokens, special_tokens, hidden_texts)

    def text_vectors(self, texts: Texts, index: Tensor | None = None) -> Tensor:
        vectors: Tensor = self.words(texts if index is None else texts.select(index))  # (U, d)
        return GAIN * vectors

    def get_input_embeddings(self) -> nn.Module:
        return self.words.embeddings

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        groups = super().parameter_groups()
        (table,) = self.words.embeddings.parameters()
        groups["new"] = [p for p in groups["new"] if p is not table]
        groups["textless"].append(table)
        return groups

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        if module is self.words.embeddings:
            init.normal_(module.weight, std=SPREAD)
        else:
            super()._init_weights(module)


AutoConfig.register(MeanSageConfig.model_type, MeanSageConfig)
AutoModel.register(MeanSageConfig, MeanSage)
