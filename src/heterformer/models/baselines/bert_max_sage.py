"""BERT+MaxSAGE: of the PLM's vectors of the text-rich neighbours, the largest value of each coordinate."""

from __future__ import annotations

from typing import Any

from torch import nn
from transformers import AutoConfig, AutoModel
from transformers import initialization as init

from heterformer.models.baselines.bert_mean_sage import BertMeanSage
from heterformer.models.baselines.cascaded import start_at_identity
from heterformer.models.baselines.convolutions import SAGEConv
from heterformer.models.configuration import NodeEncoderConfig
from heterformer.models.options import BertMaxSageOptions


class BertMaxSageConfig(NodeEncoderConfig):
    """BERT+MaxSAGE's options."""

    options_class = BertMaxSageOptions


class BertMaxSage(BertMeanSage):
    """GraphSAGE (Hamilton et al., 2017) with the pooling aggregator.

    ``W_1 h_i + W_2 max_j relu(W_pool h_j + b_pool) + b``, the maximum of each coordinate by itself and 0
    without neighbours. Differs from BERT+MeanSAGE in the aggregator alone.
    """

    config_class = BertMaxSageConfig

    def new_convolution(self, width: int) -> nn.Module:
        convolution: nn.Module = SAGEConv(width, width, aggr="max", project=True)
        return convolution

    def start(self, convolution: Any) -> None:
        super().start(convolution)
        start_at_identity(convolution.lin.weight)  # W_pool
        init.zeros_(convolution.lin.bias)


AutoConfig.register(BertMaxSageConfig.model_type, BertMaxSageConfig)
AutoModel.register(BertMaxSageConfig, BertMaxSage)
