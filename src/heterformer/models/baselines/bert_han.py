"""BERT+HAN: attention over the neighbours of each edge type, then attention over edge types."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel
from transformers import initialization as init

from heterformer.batches.batch import Batch
from heterformer.models.baselines.cascaded import (
    TEXT_RICH,
    HeterogeneousCascadedPlm,
    TypedEdges,
    start_at_identity,
    with_self,
)
from heterformer.models.baselines.convolutions import HANConv
from heterformer.models.configuration import NodeEncoderConfig
from heterformer.models.options import BertHanOptions


class BertHanConfig(NodeEncoderConfig):
    """BERT+HAN's options."""

    options_class = BertHanOptions


class BertHan(HeterogeneousCascadedPlm):
    """HAN (Wang et al., 2019): GAT per meta-path, then semantic attention over the meta-paths' results.

    Heterogeneous. A meta-path is here an edge type, as batches hold one hop; a node is among its own
    neighbours under each (the paper's definition). Unlike BERT+SHGN, each edge type has a softmax of its
    own. It starts as the mean over edge types of nearly plain means.
    """

    config_class = BertHanConfig

    def new_convolution(self, width: int) -> nn.Module:
        heads = self.config.backbone_config.num_attention_heads
        return NodewiseHan(width, heads, len(self.edge_types))

    def start(self, convolution: Any) -> None:
        start_at_identity(convolution.proj[TEXT_RICH].weight)
        init.zeros_(convolution.proj[TEXT_RICH].bias)
        small = (*convolution.lin_src.values(), *convolution.lin_dst.values(), convolution.q)
        for attention in small:
            init.normal_(attention, std=self.config.initializer_range)

    def aggregate(self, centers: Tensor, neighbors: Tensor, batch: Batch) -> Tensor:
        project = self.convolution.proj[TEXT_RICH]
        edges = self.typed_edges(project(neighbors), batch)
        vectors: Tensor = self.convolution(project(centers), edges)  # (B, d)
        return vectors


class NodewiseHan(HANConv):  # type: ignore[misc]
    """``HANConv`` with a semantic attention of each node for itself, as in the authors' code, and their ELU.

    ``HANConv`` averages that attention over the nodes it is given (the paper: over all of the network), so
    that a vector would depend on its batch. The projections ``M_phi`` by node type are ``proj`` for texts
    and ``W_phi`` for textless nodes.
    """

    def __init__(self, width: int, heads: int, edge_types: int) -> None:
        names = [(TEXT_RICH, str(number), TEXT_RICH) for number in range(edge_types)]
        super().__init__(width, width, ([TEXT_RICH], names), heads)

    def forward(self, centers: Tensor, edges: TypedEdges) -> Tensor:
        """(B, d) projected centres and projected neighbours of all kinds to (B, d) vectors."""
        center = centers.view(len(centers), self.heads, -1)  # (B, H, d/H)
        sources = torch.cat([centers, edges.sources]).view(-1, *center.shape[1:])  # (B + N, H, d/H)
        meta_paths = []
        for number, name in enumerate(self.lin_src):
            index = with_self(edges.index[:, edges.kind == number], len(centers))
            alpha = ((sources * self.lin_src[name]).sum(-1), (center * self.lin_dst[name]).sum(-1))  # (·, H)
            # propagate_type: (x: PairTensor, alpha: PairTensor)
            mixture = self.propagate(index, x=(sources, center), alpha=alpha)  # (B, d)
            meta_paths.append(F.elu(mixture))
        z = torch.stack(meta_paths, 1)  # (B, R, d)
        beta = torch.softmax((self.q * torch.tanh(self.k_lin(z))).sum(-1, keepdim=True), 1)  # (B, R, 1)
        return (beta * z).sum(1)


AutoConfig.register(BertHanConfig.model_type, BertHanConfig)
AutoModel.register(BertHanConfig, BertHan)
