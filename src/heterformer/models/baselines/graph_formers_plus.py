"""GraphFormers++: GraphFormers whose last layer sees the network as Heterformer does."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel

from heterformer.batches.batch import Batch
from heterformer.models.aggregation import NEIGHBOR_KINDS, Aggregation, EdgeProjections, Neighborhoods
from heterformer.models.baselines.graph_formers import GraphFormers
from heterformer.models.configuration import NodeEncoderConfig
from heterformer.models.heterogeneous import HeterogeneousEncoder
from heterformer.models.options import GraphFormersPlusOptions
from heterformer.models.textless import TextlessNodes


class GraphFormersPlusConfig(NodeEncoderConfig):
    """GraphFormers++'s options."""

    options_class = GraphFormersPlusOptions


class GraphFormersPlus(GraphFormers, HeterogeneousEncoder):
    """GraphFormers++ (the Heterformer paper's extension of Yang et al., 2021).

    In the last layer, heterogeneous propagation and aggregation (Eq. 6 to 9) take the place of the graph
    attention: a token of text-rich and one of textless neighbours, ``W_r`` by edge type. Differs from
    GraphFormers in that layer alone, from Heterformer in all the others.
    """

    config_class = GraphFormersPlusConfig

    def add_aggregations(self, width: int, heads: int, depths: range) -> None:
        super().add_aggregations(width, heads, depths[:-1])
        kinds = NEIGHBOR_KINDS if depths else ()  # a PLM of one layer has no layer for tokens
        self.edge_types = {kind: self.edge_types_from(getattr(self.schema, kind)) for kind in kinds}
        encodings = self.config.textless_encodings()
        self.textless = TextlessNodes(self.schema, self.config.textless_dim, width, True, encodings)
        edge_types = tuple(r for kind in kinds for r in self.edge_types[kind])
        self.edge_projections = EdgeProjections(edge_types, width, heterogeneous=True)
        self.aggregations = nn.ModuleDict({kind: Aggregation(width, heads) for kind in kinds})

    def neighborhoods(self, batch: Batch, states: Tensor, rank: Tensor) -> dict[str, Neighborhoods]:
        neighborhoods = super().neighborhoods(batch, states, rank)
        for kind in self.aggregations:
            neighborhoods[kind] = self.propagate(kind, batch, states[:, -1], rank)
        return neighborhoods

    def propagate(self, kind: str, batch: Batch, states: Tensor, rank: Tensor) -> Neighborhoods:
        """The messages ``W_r h_{v_j}`` (Eq. 8) of the neighbours of one kind; ``states`` are (U, d)."""
        centers, messages = [rank[:0]], [states[:0]]
        for r in self.edge_types[kind]:
            if r in batch.neighbors:
                text_rich = kind == "text_rich"
                nodes = states if text_rich else self.textless.of_batch(batch, r.neighbor)
                centers.append(rank[batch.neighbors[r].center])  # (E_r,)
                messages.append(self.edge_projections(r, nodes[batch.neighbors[r].node]))  # (E_r, d)
        return Neighborhoods.from_edges(rank.numel(), torch.cat(centers), (torch.cat(messages),))

    def virtual_tokens(self, depth: int, center: Tensor, neighborhoods: dict[str, Neighborhoods]) -> Tensor:
        """(B, 2, d) in the last layer, (B, 1, d) in the others."""
        if str(depth) in self.attentions:
            return super().virtual_tokens(depth, center, neighborhoods)
        tokens = [
            aggregation(center, neighborhoods[kind].messages_at(depth), neighborhoods[kind])
            for kind, aggregation in self.aggregations.items()
        ]
        return torch.stack(tokens, 1)


AutoConfig.register(GraphFormersPlusConfig.model_type, GraphFormersPlusConfig)
AutoModel.register(GraphFormersPlusConfig, GraphFormersPlus)
