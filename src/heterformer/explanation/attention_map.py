"""The attention of one centre: of its tokens, layer by layer, and of its virtual tokens over neighbours.

The model's forward is fast because it never holds these probabilities as such. Here they are computed beside
it, in plain steps with the model's own modules; the vector that comes out is the model's (the tests hold it
against that). Baselines have no virtual neighbour tokens of two kinds and are not explained this way.

Shapes: n tokens of the centre, Q of them queries, H heads of the PLM, V virtual tokens, N neighbours of one
kind, k heads of the aggregation, d the PLM's width.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from heterformer.batches.batch import Batch
from heterformer.models.aggregation import Aggregation, Neighborhoods
from heterformer.models.heterformer import Heterformer
from heterformer.models.inference import evaluating
from heterformer.models.network_readout import AttentionReadout, MeanReadout
from heterformer.models.plm.attention import position_scores
from heterformer.models.plm.backbone import pooled
from heterformer.models.plm.layouts import layout_of
from heterformer.models.plm.layouts.layout import Layout
from heterformer.network.schema import EdgeType

Queries = Literal["cls", "all"]
ATTRIBUTES = "attributes"  # the virtual token that is not of neighbours


class Edge(NamedTuple):
    """How a centre sees one of its neighbours."""

    edge_type: EdgeType
    node: int  # a position in Batch.texts or, of a textless type, in Batch.textless[type]


@dataclass(frozen=True)
class LayerAttention:
    """What one layer did. The PLM's first has no virtual tokens: V is 0, ``alpha`` empty."""

    probabilities: Tensor  # (H, Q, V + n): from the queries to the virtual tokens, then to the text's (Eq. 2)
    alpha: dict[str, Tensor]  # per virtual token (k, 1 + N): the centre itself, then its neighbours (Eq. 7)
    virtual: Tensor  # (V, d): the virtual tokens themselves (Eq. 6), in the order of ``alpha``

    def attention(self, queries: Queries) -> Tensor:
        """(V + n,): the mean over heads, of [CLS] or over all tokens that ask.

        In the last layer only [CLS] asks, unless the readout is the mean over tokens.
        """
        by_query = self.probabilities.mean(0)  # (Q, V + n)
        return by_query[0] if queries == "cls" else by_query.mean(0)

    def shares(self, kind: str) -> Tensor:
        """(1 + N,): how much of a virtual token is the centre, then each neighbour; mean over heads."""
        return self.alpha[kind].mean(0)


@dataclass(frozen=True)
class ReadoutAttention:
    """What the network readout added for one kind of neighbour."""

    alpha: Tensor  # (k, 1 + N): the centre itself, then its neighbours: attention or weights, adding up to 1
    added: Tensor  # (d,): what was added to the vector

    @property
    def shares(self) -> Tensor:
        """(1 + N,): how much of it is the centre, then each neighbour; mean over heads."""
        return self.alpha.mean(0)


@dataclass(frozen=True)
class AttentionMap:
    """All layers of one centre, and its vector as they make it."""

    layers: tuple[LayerAttention, ...]
    neighbors: dict[str, tuple[Edge, ...]]  # per virtual token, in the order of ``alpha``
    vector: Tensor  # (d,)
    unnormalized: Tensor  # (d,): the same before it is brought to length 1, if the model does that
    readout: dict[str, ReadoutAttention]  # per kind of neighbour that the network readout adds


def attention_map(model: Heterformer, batch: Batch) -> AttentionMap:
    """``model.encode_batch(batch)`` of a single centre, step by step, without dropout and gradients."""
    if len(batch.centers) != 1:
        raise ValueError(f"the batch has {len(batch.centers)} centres, expected one")
    with evaluating(model):
        return _attention_map(model, batch)


def _attention_map(model: Heterformer, batch: Batch) -> AttentionMap:
    """Algorithm 1, as in ``Heterformer.forward``."""
    states = model.text_states(batch.texts.first(batch.neighbor_texts))  # (U, L, d)
    packing = model.pack(batch.texts, batch.centers)
    kinds, rank = model.neighbor_kinds, packing.rank
    neighborhoods = {kind: model.propagate(kind, batch, states, rank) for kind in kinds}
    attributes = model.encoded_attributes(batch, states, rank)  # (1, d)
    plm, by_cls = layout_of(model.backbone, packing), model.config.readout == "cls"
    hidden = plm.embed()  # H^(0), (n, d)
    layers = []
    for depth in range(len(plm.layers)):
        center = pooled(hidden, packing, model.config.neighbor_pooling)[0]  # h^(l), (d,)
        alpha, tokens = {}, [hidden[:0]]
        for kind in model.kinds if depth else ():
            aggregation = model.aggregations[model.aggregation_name(kind, depth)]
            messages = neighborhoods[kind].messages_at(depth)  # (N, d), Eq. 8
            alpha[kind], token = _aggregated(aggregation, torch.cat([center[None], messages]))
            tokens.append(token[None])
        if depth and attributes is not None:
            alpha[ATTRIBUTES] = center.new_ones(1, 1)  # it has no neighbours
            tokens.append(center[None] + attributes)
        virtual = torch.cat(tokens)  # (V, d)
        queries = 1 if by_cls and depth == len(plm.layers) - 1 else len(hidden)  # what is read of it
        probabilities, hidden = _attended(plm, depth, hidden, virtual, queries)
        layers.append(LayerAttention(probabilities, alpha, virtual))
    vector = hidden[0] if by_cls else hidden.mean(0)
    readout = _readout(model, vector, neighborhoods)
    vector = vector + sum(part.added for part in readout.values())
    vector = model.with_codes(batch, vector[None])[0]
    neighbors = {kind: _edges(model, kind, batch) for kind in kinds}
    neighbors |= {} if attributes is None else {ATTRIBUTES: ()}
    return AttentionMap(tuple(layers), neighbors, model.maybe_normalize(vector), vector, readout)


def _readout(
    model: Heterformer, vector: Tensor, neighborhoods: dict[str, Neighborhoods]
) -> dict[str, ReadoutAttention]:
    """What the network readout adds, kind by kind."""
    parts = {}
    readout = model.network_readout
    for kind in readout.kinds:
        messages = neighborhoods[kind].messages_at(readout.layer)  # (N, d)
        if isinstance(readout, MeanReadout):
            weights = readout.weights(kind, neighborhoods[kind])  # (N,)
            total = weights.abs().sum().clamp(min=torch.finfo(weights.dtype).tiny)
            alpha = torch.cat([weights.new_zeros(1), weights.abs() / total])[None]  # nothing of the centre
            parts[kind] = ReadoutAttention(alpha, weights @ messages)
        else:
            assert isinstance(readout, AttentionReadout)
            alpha, token = _aggregated(readout.aggregations[kind], torch.cat([vector[None], messages]))
            parts[kind] = ReadoutAttention(alpha, readout.gates[kind] * token)
    return parts


def _aggregated(aggregation: Any, entries: Tensor) -> tuple[Tensor, Tensor]:
    """(k, 1 + N) and (d,): weights (Eq. 7) and token (Eq. 6) of ``entries``, (1 + N, d), the centre first."""
    assert isinstance(aggregation, Aggregation)
    heads = aggregation.heads
    query = _by_head(entries[:1] @ aggregation.query.T, heads)  # (k, 1, d/k)
    key = _by_head(entries @ aggregation.key.T, heads)  # (k, 1 + N, d/k)
    value = _by_head(entries @ aggregation.value.T, heads)
    alpha = torch.softmax(query @ key.mT / math.sqrt(key.shape[-1]), -1)  # (k, 1, 1 + N)
    return alpha[:, 0], (alpha @ value).flatten()


def _attended(
    plm: Layout, depth: int, hidden: Tensor, virtual: Tensor, queries: int
) -> tuple[Tensor, Tensor]:
    """(H, Q, V + n) and (Q, d): the asymmetric MHA's probabilities and the layer's output (Eq. 4 and 5)."""
    tokens = plm.attention_input(depth, torch.cat([hidden, virtual]))  # (n + V, d)
    query, key, value = (_by_head(F.linear(tokens, *p), plm.heads) for p in plm.projections(depth))
    query = query[:, :queries] / math.sqrt(plm.head_size)  # (H, Q, d/H)
    scores = position_scores(query, key, len(hidden), plm.positions(depth))
    probabilities = torch.softmax(scores, -1)  # (H, Q, n + V)
    mixture = (probabilities @ value).transpose(0, 1).flatten(1)  # (Q, d)
    n = len(hidden)
    probabilities = torch.cat([probabilities[..., n:], probabilities[..., :n]], -1)  # virtual tokens first
    return probabilities, plm.outputs(depth, hidden[:queries], mixture)


def _by_head(x: Tensor, heads: int) -> Tensor:
    """(rows, d) to (heads, rows, d/heads)."""
    return x.view(len(x), heads, -1).transpose(0, 1)


def _edges(model: Heterformer, kind: str, batch: Batch) -> tuple[Edge, ...]:
    """The neighbours in the order in which ``Heterformer.propagate`` takes them."""
    seen = [r for r in model.edge_types[kind] if r in batch.neighbors]
    return tuple(Edge(r, node) for r in seen for node in batch.neighbors[r].node.tolist())
