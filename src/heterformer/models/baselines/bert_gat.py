"""BERT+GAT: the PLM's vectors, averaged over text-rich neighbours with learnt attention."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel

from heterformer.batches.batch import Batch
from heterformer.models.baselines.cascaded import CascadedPlm, start_attention, with_self
from heterformer.models.baselines.convolutions import GATConv
from heterformer.models.configuration import NodeEncoderConfig
from heterformer.models.options import BertGatOptions


class BertGatConfig(NodeEncoderConfig):
    """BERT+GAT's options."""

    options_class = BertGatOptions


class BertGat(CascadedPlm):
    """GAT (Veličković et al., 2018): ``sum_j a_ij W h_j + b`` over the neighbours and the node itself.

    ``a_ij`` is the softmax of ``LeakyReLU(a_1 W h_i + a_2 W h_j)``, head by head (as many as the PLM has).
    Homogeneous. Unlike BERT+MeanSAGE neighbours have weights, and the node itself is one among them; it
    starts as a nearly plain mean of all of them.
    """

    config_class = BertGatConfig

    def new_convolution(self, width: int) -> nn.Module:
        heads = self.config.backbone_config.num_attention_heads
        # The node itself is given as a source: here rows of sources and of centres are different nodes.
        convolution: nn.Module = GATConv(width, width // heads, heads, add_self_loops=False)
        return convolution

    def start(self, convolution: Any) -> None:
        start_attention(convolution, self.config.initializer_range)

    def aggregate(self, centers: Tensor, neighbors: Tensor, batch: Batch) -> Tensor:
        sources = torch.cat([centers, neighbors])  # (B + U, d)
        edges = with_self(self.text_edges(batch), len(centers))  # (2, B + E)
        vectors: Tensor = self.convolution((sources, centers), edges)  # (B, d)
        return vectors


AutoConfig.register(BertGatConfig.model_type, BertGatConfig)
AutoModel.register(BertGatConfig, BertGat)
