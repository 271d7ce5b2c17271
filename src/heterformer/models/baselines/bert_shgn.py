"""BERT+SHGN: GAT over all neighbours, which also looks at the edge type, with a residual connection."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel

from heterformer.batches.batch import Batch
from heterformer.models.baselines.cascaded import (
    HeterogeneousCascadedPlm,
    start_attention,
    with_self,
)
from heterformer.models.baselines.convolutions import GATConv
from heterformer.models.configuration import NodeEncoderConfig
from heterformer.models.options import BertShgnOptions

EDGE_WIDTH = 64  # of an edge type's embedding, as in the authors' code


class BertShgnConfig(NodeEncoderConfig):
    """BERT+SHGN's options."""

    options_class = BertShgnOptions


class BertShgn(HeterogeneousCascadedPlm):
    """Simple-HGN (Lv et al., 2021): ``sum_j a_ij W h_j + h_i``, normalised.

    ``a_ij`` is GAT's, with ``a_3 W_3 e_r`` of a learnt edge type embedding ``e_r`` added inside; a node sees
    itself by an edge type of its own. Heterogeneous; unlike BERT+HGT edge types change the attention only.
    Its attention residual needs a layer before and does not apply. Vectors are made ``sqrt(d) / 2`` long,
    about as a PLM's are: of length 1, a loss without temperature could not tell them apart.
    """

    config_class = BertShgnConfig

    def add_inputs(self) -> None:
        super().add_inputs()
        self.edge_embeddings = nn.Embedding(len(self.edge_types) + 1, EDGE_WIDTH)  # the last one is to itself

    def new_convolution(self, width: int) -> nn.Module:
        heads = self.config.backbone_config.num_attention_heads
        options = {"add_self_loops": False, "bias": False, "edge_dim": EDGE_WIDTH}
        convolution: nn.Module = GATConv(width, width // heads, heads, **options)
        return convolution

    def start(self, convolution: Any) -> None:
        start_attention(convolution, self.config.initializer_range)

    def aggregate(self, centers: Tensor, neighbors: Tensor, batch: Batch) -> Tensor:
        edges = self.typed_edges(neighbors, batch)
        sources = torch.cat([centers, edges.sources])  # (B + N, d)
        itself = edges.kind.new_full((len(centers),), len(self.edge_types))
        kinds = self.edge_embeddings(torch.cat([itself, edges.kind]))  # (B + E, 64)
        index = with_self(edges.index, len(centers))
        mixture: Tensor = self.convolution((sources, centers), index, kinds)  # (B, d)
        return F.normalize(mixture + centers, dim=-1) * (math.sqrt(self.width) / 2)


AutoConfig.register(BertShgnConfig.model_type, BertShgnConfig)
AutoModel.register(BertShgnConfig, BertShgn)
