"""GraphFormers: in every layer of the PLM one more token, made of the text-rich neighbours' [CLS] states."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel
from transformers import initialization as init

from heterformer.batches.batch import Batch, Texts
from heterformer.models.aggregation import Aggregation, Neighborhoods
from heterformer.models.backbone_encoder import BackboneEncoder
from heterformer.models.configuration import NodeEncoderConfig
from heterformer.models.options import GraphFormersOptions
from heterformer.models.plm.backbone import layer_states, pooled
from heterformer.models.plm.layouts import layout_of


class GraphFormersConfig(NodeEncoderConfig):
    """GraphFormers' options, with Heterformer's names and defaults."""

    options_class = GraphFormersOptions


class GraphAttention(Aggregation):
    """Attention over the [CLS] states of a centre and its neighbours, with a learnt bias per head.

    The bias depends on whether a state is the centre's own; of the two values only the difference matters.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__(width, heads)
        self.own_bias = nn.Parameter(torch.empty(heads))

    def scores(self, query: Tensor, entries: Tensor) -> Tensor:
        scores = super().scores(query, entries)  # (B, k, 1 + F)
        return scores + F.pad(self.own_bias[:, None], (0, scores.shape[2] - 1))

    def initialize(self, start: str, std: float) -> None:
        super().initialize(start, std)
        init.zeros_(self.own_bias)


class GraphFormers(BackboneEncoder):
    """GraphFormers (Yang et al., 2021), nested like Heterformer but homogeneous.

    Keys and values of each layer but the first hold a token that a centre's graph attention makes of its
    text-rich neighbours' states, whatever the edge type; neighbours are read by the PLM alone (the
    paper's one-directional form). Each layer has an attention of its own, as Heterformer's have.
    """

    config_class = GraphFormersConfig

    def __init__(self, config: GraphFormersConfig) -> None:
        super().__init__(config)
        plm = config.backbone_config
        self.add_backbone()
        self.add_aggregations(plm.hidden_size, plm.num_attention_heads, range(1, plm.num_hidden_layers))
        self.post_init()

    def add_aggregations(self, width: int, heads: int, depths: range) -> None:
        self.attentions = nn.ModuleDict({str(depth): GraphAttention(width, heads) for depth in depths})

    @property
    def states_per_text(self) -> int:
        return int(self.config.backbone_config.num_hidden_layers) - 1

    def text_states(self, texts: Texts) -> Tensor:
        """(U, L, d): the state with which each text enters each layer but the first, all by itself."""
        return layer_states(self.backbone, self.pack(texts), self.config.neighbor_pooling)

    def forward(self, batch: Batch, states: Tensor) -> Tensor:
        """(B, d): the centres' vectors."""
        packing = self.pack(batch.texts, batch.centers)
        neighborhoods = self.neighborhoods(batch, states, packing.rank)
        plm = layout_of(self.backbone, packing)
        hidden = plm.embed()  # (T, d)
        for depth in range(len(plm.layers)):
            center = pooled(hidden, packing, self.config.neighbor_pooling)  # (B, d)
            virtual = self.virtual_tokens(depth, center, neighborhoods) if depth else None  # (B, V, d)
            first_only = depth == len(plm.layers) - 1 and self.config.readout == "cls"
            hidden = plm.run_layer(depth, hidden, virtual, first_only)  # (T, d)
        vectors = hidden if self.config.readout == "cls" else packing.mean(hidden)  # (B, d)
        return self.maybe_normalize(vectors[packing.rank])

    def neighborhoods(self, batch: Batch, states: Tensor, rank: Tensor) -> dict[str, Neighborhoods]:
        """Who sends which state to whom, by the name under which ``virtual_tokens`` looks for it."""
        edges = [n for r, n in batch.neighbors.items() if r.neighbor in self.schema.text_rich]
        node = torch.cat([rank[:0], *(n.node for n in edges)])  # (E,)
        center = torch.cat([rank[:0], *(rank[n.center] for n in edges)])
        return {"any": Neighborhoods.from_edges(rank.numel(), center, states[node].unbind(1))}

    def virtual_tokens(self, depth: int, center: Tensor, neighborhoods: dict[str, Neighborhoods]) -> Tensor:
        """(B, 1, d): the graph attention's token for the layer at ``depth``."""
        seen = neighborhoods["any"]
        token: Tensor = self.attentions[str(depth)](center, seen.messages_at(depth), seen)
        return token[:, None]


AutoConfig.register(GraphFormersConfig.model_type, GraphFormersConfig)
AutoModel.register(GraphFormersConfig, GraphFormers)
