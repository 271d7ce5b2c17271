"""Heterformer: Transformer-based Deep Node Representation Learning on Heterogeneous Text-Rich Networks.

The whole model, top to bottom as in Algorithm 1. A text-rich node is read by the PLM's own layers; from
the second layer on its tokens also attend to two virtual neighbour tokens, one made of its text-rich
neighbours' [CLS] states in that layer, one of its textless neighbours' embeddings.

Shapes: U texts of T tokens in all, B centre nodes, E edges, d the PLM's width, L its layers but the first.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel

from heterformer.batches.batch import Batch, TextlessCenters, Texts
from heterformer.models.aggregation import NEIGHBOR_KINDS, Aggregation, EdgeProjections, Neighborhoods
from heterformer.models.attributes import AttributeEncoder
from heterformer.models.backbone_encoder import BackboneEncoder
from heterformer.models.configuration import HeterformerConfig
from heterformer.models.heterogeneous import HeterogeneousEncoder
from heterformer.models.neighbor_codes import NeighborCodes
from heterformer.models.network_readout import (
    AttentionReadout,
    MeanReadout,
    NeighborReadout,
    NetworkReadout,
)
from heterformer.models.plm.backbone import layer_states, pooled
from heterformer.models.plm.layouts import layout_of
from heterformer.models.textless import TextlessNodes
from heterformer.models.textless_readout import TextlessReadout
from heterformer.network.schema import EdgeType, NodeType


class Heterformer(HeterogeneousEncoder, BackboneEncoder):
    """The paper's model: a Transformer whose layers also read a node's neighbours.

    Its options include the paper's ablations. ``train`` makes and trains one; ``load_model`` opens a trained
    model of any kind.

    Example:
        >>> from heterformer import Heterformer, Network
        >>> network = Network.open("papers.net")
        >>> model = Heterformer.from_backbone("minilm", network)  # untrained
        >>> model = Heterformer.from_pretrained("runs/papers")  # trained
        >>> vectors = model.encode(["graph attention networks", "news recommendation"])  # (2, d)
    """

    config_class = HeterformerConfig

    def __init__(self, config: HeterformerConfig) -> None:
        super().__init__(config)
        plm, schema = config.backbone_config, self.schema
        d, heads = plm.hidden_size, config.aggregation_heads or plm.num_attention_heads
        self.kinds = [kind for kind in NEIGHBOR_KINDS if config.virtual_tokens in (kind, "both")]
        self.readout_kinds = [kind for kind in NEIGHBOR_KINDS if config.network_readout in (kind, "both")]
        self.neighbor_kinds = [kind for kind in NEIGHBOR_KINDS if kind in (*self.kinds, *self.readout_kinds)]
        self.edge_types = {kind: self.edge_types_from(getattr(schema, kind)) for kind in self.neighbor_kinds}
        self.add_backbone()
        sizes = config.textless_dim, d, config.heterogeneous_projection
        self.textless = TextlessNodes(schema, *sizes, config.textless_encodings())
        edge_types = tuple(r for kind in self.neighbor_kinds for r in self.edge_types[kind])
        self.edge_projections = EdgeProjections(edge_types, d, config.heterogeneous_projection)
        depths = range(1, plm.num_hidden_layers)
        names = dict.fromkeys(self.aggregation_name(kind, depth) for kind in self.kinds for depth in depths)
        self.aggregations = nn.ModuleDict({name: Aggregation(d, heads) for name in names})
        self.attribute_encoders = nn.ModuleDict(
            {t: AttributeEncoder(encoding, d) for t, encoding in config.token_encodings().items()}
        )
        self.network_readout = self.new_readout(heads)
        if config.second_hop:
            self.neighbor_readout = NeighborReadout(self.readout_edge_types)
        if config.neighbor_codes:
            self.neighbor_codes = NeighborCodes(d, schema.text_rich)
        if config.textless_neighbors:
            self.textless_readout = TextlessReadout(schema, d, heads)
        self.post_init()

    def new_readout(self, heads: int) -> NetworkReadout:
        layer = self.config.backbone_config.num_hidden_layers
        if self.config.readout_aggregation == "attention":
            return AttentionReadout(self.readout_kinds, layer, self.width, heads)
        return MeanReadout(self.readout_edge_types, layer)

    @property
    def readout_edge_types(self) -> dict[str, tuple[EdgeType, ...]]:
        """Those by which the network readout sees neighbours of each kind."""
        return {kind: self.edge_types[kind] for kind in self.readout_kinds}

    def text_states(self, texts: Texts) -> Tensor:
        """(U, L, d): the [CLS] state with which each text enters each layer but the first, all by itself.

        With a network readout (U, L + 1, d): the final vector comes last. (U, 0, d) if no text is read.
        """
        if "text_rich" not in self.neighbor_kinds:
            return torch.empty(len(texts), 0, self.width, device=self.device, dtype=self.dtype)
        readout = self.config.readout if "text_rich" in self.readout_kinds else None
        return layer_states(self.backbone, self.pack(texts), self.config.neighbor_pooling, readout)

    @property
    def states_per_text(self) -> int:
        layers = self.config.backbone_config.num_hidden_layers if "text_rich" in self.neighbor_kinds else 0
        return layers if self.states_end_with_vector else max(layers - 1, 0)

    @property
    def states_end_with_vector(self) -> bool:
        return "text_rich" in self.readout_kinds

    def forward(self, batch: Batch, states: Tensor) -> Tensor:
        """(B, d): Algorithm 1, for all centres of the batch at once."""
        packing = self.pack(batch.texts, batch.centers)
        rank = packing.rank
        neighborhoods = {kind: self.propagate(kind, batch, states, rank) for kind in self.neighbor_kinds}
        attributes = self.encoded_attributes(batch, states, rank)
        plm = layout_of(self.backbone, packing)
        hidden = plm.embed()  # H^(0), (T, d)
        for depth in range(len(plm.layers)):
            center = pooled(hidden, packing, self.config.neighbor_pooling)  # h^(l), (B, d)
            virtual = self.virtual_tokens(depth, center, neighborhoods, attributes)  # z^(l), (B, 2, d)
            first_only = depth == len(plm.layers) - 1 and self.config.readout == "cls"
            hidden = plm.run_layer(depth, hidden, virtual, first_only)  # H^(l + 1), Eq. 4 and 5
        vectors = hidden if self.config.readout == "cls" else packing.mean(hidden)  # (B, d)
        vectors = self.network_readout(vectors, neighborhoods)[packing.rank]
        return self.maybe_normalize(self.with_codes(batch, vectors))

    def with_codes(self, batch: Batch, vectors: Tensor) -> Tensor:
        """(B, d): the centres' vectors with the codes of their text-rich neighbours, by option."""
        return self.neighbor_codes(batch, vectors) if self.config.neighbor_codes else vectors

    @property
    def second_hop(self) -> int:
        return self.config.second_hop or 0

    def final_vectors(self, batch: Batch, vectors: Tensor) -> Tensor:
        """(U, d): the vectors of texts by themselves, or with their own neighbours if a batch has those."""
        return self.neighbor_vectors(batch, vectors) if batch.second_hop and self.second_hop else vectors

    def neighbor_vectors(self, batch: Batch, vectors: Tensor) -> Tensor:
        sources = dict.fromkeys(self.schema.text_rich, vectors)
        if "textless" in self.readout_kinds:
            sources |= {t: self.textless.of_batch(batch, t) for t in batch.textless}
        read: Tensor = self.neighbor_readout(vectors, batch.second_hop, sources, self.edge_projections)
        return read

    @property
    def textless_fan_out(self) -> int:
        return self.config.textless_neighbors or 0

    def textless_center_vectors(self, batch: Batch, centers: TextlessCenters, states: Tensor) -> Tensor:
        """(C, d): ``W_phi h^(0)``, with the final vectors of text-rich neighbours added if asked for."""
        starts = self.textless_starts(centers)
        if self.config.textless_neighbors:
            starts = self.textless_readout(starts, centers, self.final_vectors(batch, states[:, -1]))
        return self.maybe_normalize(starts)

    def virtual_tokens(
        self,
        depth: int,
        center: Tensor,
        neighborhoods: dict[str, Neighborhoods],
        attributes: Tensor | None = None,
    ) -> Tensor | None:
        """(B, 2, d): a token per kind of neighbour (Eq. 6), for all layers but the first.

        By option a third, ``h^(l) + A x``: like the others it starts as the centre's own state.
        """
        if depth == 0 or not (self.kinds or attributes is not None):
            return None
        tokens = [self.aggregate(kind, depth, center, neighborhoods[kind]) for kind in self.kinds]
        if attributes is not None:
            tokens.append(center + attributes)
        return torch.stack(tokens, 1)

    def encoded_attributes(self, batch: Batch, states: Tensor, rank: Tensor) -> Tensor | None:
        """(B, d): ``A x`` of the centres, 0 for those without attributes; None without such a token."""
        if not self.attribute_encoders:
            return None
        encoded = states.new_zeros(rank.numel(), self.width)
        for node_type, own in batch.attributes.items():
            values = self.attribute_encoders[node_type](own.numbers, own.categories)
            encoded = encoded.index_copy(0, rank[own.center], values.to(encoded.dtype))
        return encoded

    def propagate(self, kind: str, batch: Batch, states: Tensor, rank: Tensor) -> Neighborhoods:
        """The messages ``W_r h_{v_j}`` (Eq. 8) of all neighbours of one kind, for all layers at once."""
        edges = {r: batch.neighbors[r] for r in self.edge_types[kind] if r in batch.neighbors}
        number = {r: i for i, r in enumerate(self.edge_types[kind])}
        center = torch.cat([rank[:0], *(rank[e.center] for e in edges.values())])  # (E,)
        edge_type = torch.cat([rank[:0], *(torch.full_like(e.center, number[r]) for r, e in edges.items())])
        messages: list[Tensor] = []
        for sources, layers in self.sources(kind, batch, states):
            sent = [self.edge_projections(r, sources[r.neighbor][e.node]) for r, e in edges.items()]
            messages += torch.cat([states.new_empty(0, layers, self.width), *sent]).unbind(1)
        return Neighborhoods.from_edges(rank.numel(), center, tuple(messages), edge_type)

    def sources(self, kind: str, batch: Batch, states: Tensor) -> list[tuple[dict[NodeType, Tensor], int]]:
        """The neighbours' states by type, (n, S, d) of S layers each, in parts that are projected apart.

        Final vectors are a part of their own: of stored states they alone can have a gradient.
        """
        if kind == "textless":  # in every layer the same
            return [({t: self.textless.of_batch(batch, t)[:, None] for t in batch.textless}, 1)]
        parts = [states]
        if self.states_end_with_vector:
            below, last = torch.split(states, [states.shape[1] - 1, 1], 1)
            parts = [below, self.final_vectors(batch, last[:, 0])[:, None]]
        return [(dict.fromkeys(self.schema.text_rich, part), part.shape[1]) for part in parts]

    def aggregate(self, kind: str, depth: int, center: Tensor, neighborhoods: Neighborhoods) -> Tensor:
        """(B, d): the virtual neighbour token of one kind for one layer (Eq. 6)."""
        aggregation = self.aggregations[self.aggregation_name(kind, depth)]
        token: Tensor = aggregation(center, neighborhoods.messages_at(depth), neighborhoods)
        return token

    def aggregation_name(self, kind: str, depth: int) -> str:
        """Which aggregation serves: one each, unless layers or kinds share theirs."""
        kind = "any_kind" if self.config.share_aggregation_kinds else kind
        return f"{kind}_any_layer" if self.config.share_aggregation_layers else f"{kind}_{depth}"

    @property
    def embedded_types(self) -> tuple[NodeType, ...]:
        """Nothing is learnt of textless nodes that no token and no readout looks at."""
        return self.schema.text_rich + (self.schema.textless if "textless" in self.neighbor_kinds else ())

    @property
    def neighbor_types(self) -> tuple[NodeType, ...]:
        """Those of the kinds that virtual neighbour tokens and the network readout are made of."""
        return tuple(t for kind in self.neighbor_kinds for t in getattr(self.schema, kind))


# So that ``AutoModel`` and ``AutoTokenizer`` know what a saved model's folder holds.
AutoConfig.register(HeterformerConfig.model_type, HeterformerConfig)
AutoModel.register(HeterformerConfig, Heterformer)
