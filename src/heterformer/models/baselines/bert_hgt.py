"""BERT+HGT: Transformer-like attention over all neighbours, with matrices by node type and by edge type."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel
from transformers import initialization as init

from heterformer.batches.batch import Batch
from heterformer.models.baselines.cascaded import (
    TEXT_RICH,
    HeterogeneousCascadedPlm,
    start_at_identity,
)
from heterformer.models.baselines.convolutions import HeteroLinear, HGTConv
from heterformer.models.configuration import NodeEncoderConfig
from heterformer.models.options import BertHgtOptions
from heterformer.network.schema import EdgeType, NodeType


class BertHgtConfig(NodeEncoderConfig):
    """BERT+HGT's options."""

    options_class = BertHgtOptions


class BertHgt(HeterogeneousCascadedPlm):
    """HGT (Hu et al., 2020): keys, queries and values by node type, two more matrices by edge type.

    One softmax over the neighbours of all types; the result is mixed with the node's own vector by a
    learnt gate (the authors' code). Heterogeneous; unlike BERT+SHGN edge types change the messages, not
    only the attention. It starts like Heterformer's aggregation, with the gate half open.
    """

    config_class = BertHgtConfig

    def new_convolution(self, width: int) -> nn.Module:
        heads = self.config.backbone_config.num_attention_heads
        types = [TEXT_RICH, *(self.name_of(t) for t in self.schema.textless)]
        convolution: Any = HGTConv(width, width, (types, [self.triple(r) for r in self.edge_types]), heads)
        for unread in types[1:]:  # textless nodes receive nothing
            del convolution.out_lin.lins[unread], convolution.skip[unread]
        for name in ("k_rel", "v_rel"):
            setattr(convolution, name, RelationMatrices(width // heads, heads * len(self.edge_types)))
        result: nn.Module = convolution
        return result

    def start(self, convolution: Any) -> None:
        for linear in convolution.kqv_lin.lins.values():
            eye = torch.eye(self.width, dtype=linear.weight.dtype, device=linear.weight.device)
            init.copy_(linear.weight, torch.cat([eye / 2, eye / 2, eye]))  # keys, queries, values
            init.zeros_(linear.bias)
        start_at_identity(convolution.k_rel.weight)
        start_at_identity(convolution.v_rel.weight)
        start_at_identity(convolution.out_lin.lins[TEXT_RICH].weight, 2.0)  # GELU has halved small values
        init.zeros_(convolution.out_lin.lins[TEXT_RICH].bias)
        init.zeros_(convolution.skip[TEXT_RICH])

    def aggregate(self, centers: Tensor, neighbors: Tensor, batch: Batch) -> Tensor:
        nodes = {TEXT_RICH: torch.cat([centers, neighbors])}  # (B + U, d)
        for t in self.schema.textless:
            nodes[self.name_of(t)] = self.textless.of_batch(batch, t)  # (n, d)
        # All edge types, in their order: the convolution takes it for granted that they are sorted.
        edges = {self.triple(r): self.edges_of(r, len(centers), batch) for r in self.edge_types}
        vectors: Tensor = self.convolution(nodes, edges)[TEXT_RICH][: len(centers)]  # (B, d)
        return vectors

    def edges_of(self, r: EdgeType, centers: int, batch: Batch) -> Tensor:
        """(2, E_r): the edges of one type, the centres being the first rows of the texts."""
        if r not in batch.neighbors:
            return torch.stack([batch.centers[:0]] * 2)
        node, center = batch.neighbors[r].node, batch.neighbors[r].center
        return torch.stack([node + centers if r.neighbor in self.schema.text_rich else node, center])

    def name_of(self, node_type: NodeType) -> str:
        """A name that is no attribute of PyTorch's dictionaries of modules, whatever the user's is."""
        return TEXT_RICH if node_type in self.schema.text_rich else f"textless_{node_type}"

    def triple(self, r: EdgeType) -> tuple[str, str, str]:
        return self.name_of(r.neighbor), r.name, TEXT_RICH


class RelationMatrices(HeteroLinear):  # type: ignore[misc]
    """``HeteroLinear`` without its writes into one tensor, part by part, which backward has to undo."""

    def __init__(self, width: int, types: int) -> None:
        super().__init__(width, width, types, is_sorted=True, bias=False)

    def forward_naive(self, x: Tensor, type_ptr: Tensor) -> Tensor:
        parts = torch.split(x, type_ptr.diff().tolist())
        return torch.cat([part @ weight for part, weight in zip(parts, self.weight, strict=True)])


AutoConfig.register(BertHgtConfig.model_type, BertHgtConfig)
AutoModel.register(BertHgtConfig, BertHgt)
