"""BERT+MeanSAGE: the PLM's vectors, averaged over text-rich neighbours."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from transformers import AutoConfig, AutoModel
from transformers import initialization as init

from heterformer.batches.batch import Batch
from heterformer.models.baselines.cascaded import CascadedEncoder, CascadedPlm, start_at_identity
from heterformer.models.baselines.convolutions import SAGEConv
from heterformer.models.configuration import NodeEncoderConfig
from heterformer.models.options import BertMeanSageOptions


class BertMeanSageConfig(NodeEncoderConfig):
    """BERT+MeanSAGE's options."""

    options_class = BertMeanSageOptions


class MeanAggregator(CascadedEncoder):
    """GraphSAGE (Hamilton et al., 2017) with the mean aggregator: ``W_1 h_i + W_2 mean_j h_j + b``.

    It starts as half the node's own vector and half its neighbours' mean. No activation, as it is the last
    layer; whether vectors have length 1 is the option ``normalize`` of all models.
    """

    def new_convolution(self, width: int) -> nn.Module:
        convolution: nn.Module = SAGEConv(width, width, aggr="mean")
        return convolution

    def start(self, convolution: Any) -> None:
        start_at_identity(convolution.lin_r.weight, 0.5)  # W_1
        start_at_identity(convolution.lin_l.weight, 0.5)  # W_2
        init.zeros_(convolution.lin_l.bias)

    def aggregate(self, centers: Tensor, neighbors: Tensor, batch: Batch) -> Tensor:
        vectors: Tensor = self.convolution((neighbors, centers), self.text_edges(batch))  # (B, d)
        return vectors


class BertMeanSage(MeanAggregator, CascadedPlm):
    """GraphSAGE with the mean aggregator behind a PLM.

    Homogeneous. Unlike BERT+GAT all neighbours count alike; unlike MeanSAGE the texts are read by a PLM.
    """

    config_class = BertMeanSageConfig


AutoConfig.register(BertMeanSageConfig.model_type, BertMeanSageConfig)
AutoModel.register(BertMeanSageConfig, BertMeanSage)
