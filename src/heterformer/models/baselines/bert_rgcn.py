"""BERT+RGCN: the PLM's vectors and textless embeddings, averaged over neighbours edge type by edge type."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from transformers import AutoConfig, AutoModel
from transformers import initialization as init

from heterformer.batches.batch import Batch
from heterformer.models.baselines.cascaded import (
    HeterogeneousCascadedPlm,
    start_at_identity,
)
from heterformer.models.baselines.convolutions import RGCNConv
from heterformer.models.configuration import NodeEncoderConfig
from heterformer.models.options import BertRgcnOptions


class BertRgcnConfig(NodeEncoderConfig):
    """BERT+RGCN's options."""

    options_class = BertRgcnOptions


class BertRgcn(HeterogeneousCascadedPlm):
    """RGCN (Schlichtkrull et al., 2018): ``W_0 h_i + sum_r W_r mean_{j in N_r(i)} h_j + b``.

    Heterogeneous: a matrix per edge type, no attention. With a single edge type it would be BERT+MeanSAGE;
    like it, it starts as half the node's own vector and half its neighbours', a share per edge type.
    """

    config_class = BertRgcnConfig

    def new_convolution(self, width: int) -> nn.Module:
        convolution: nn.Module = RGCNConv(width, width, len(self.edge_types), aggr="mean")
        return convolution

    def start(self, convolution: Any) -> None:
        start_at_identity(convolution.root, 0.5)  # W_0
        start_at_identity(convolution.weight, 0.5 / self.text_edge_types())  # W_r
        init.zeros_(convolution.bias)

    def text_edge_types(self) -> int:
        """Under how many edge types a node can see texts: their means are added up."""
        centers = [r.center for r in self.edge_types if r.neighbor in self.schema.text_rich]
        return max(centers.count(t) for t in centers)

    def aggregate(self, centers: Tensor, neighbors: Tensor, batch: Batch) -> Tensor:
        edges = self.typed_edges(neighbors, batch)
        vectors: Tensor = self.convolution((edges.sources, centers), edges.index, edges.kind)  # (B, d)
        return vectors


AutoConfig.register(BertRgcnConfig.model_type, BertRgcnConfig)
AutoModel.register(BertRgcnConfig, BertRgcn)
