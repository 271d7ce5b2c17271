"""GraphFormers and GraphFormers++ written out with loops, as the yardstick for the fast forms."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from heterformer.batches.batch import Batch
from tests import reference


def literal_vectors(model: Any, batch: Batch) -> Tensor:
    """(B, d): what ``model.encode_batch(batch)`` must return."""
    return torch.stack([_center_vector(model, batch, i) for i in range(len(batch.centers))])


def _center_vector(model: Any, batch: Batch, i: int) -> Tensor:
    plm, schema = model.backbone, model.schema
    text = reference._embedded_windows(model, batch, int(batch.centers[i]))
    texts, textless = [], []
    for r, edges in batch.neighbors.items():
        for center, node in zip(edges.center.tolist(), edges.node.tolist(), strict=True):
            if center == i and r.neighbor in schema.text_rich:
                texts.append((r, reference._embedded_windows(model, batch, node)))
            elif center == i and hasattr(model, "textless"):
                number, row = schema.textless.index(r.neighbor), batch.textless[r.neighbor][node]
                h = model.textless.projections[number].weight @ model.textless.tables[number].weight[row]
                textless.append((r, h))
    layers = reference.layers_of(plm)
    for depth in range(len(layers)):
        own = reference._state(model, text)
        states = [(r, reference._state(model, windows)) for r, windows in texts]
        if depth == 0:
            virtual = []
        elif hasattr(model, "textless") and depth == len(layers) - 1:
            virtual = [
                reference._aggregate(model.aggregations[kind], own, [_message(model, r, h) for r, h in seen])
                for kind, seen in (("text_rich", states), ("textless", textless))
            ]
        else:
            virtual = [_graph_attention(model.attentions[str(depth)], own, [h for _, h in states])]
        text = [(reference._asymmetric_layer(plm, depth, h, m, virtual), m) for h, m in text]
        texts = [(r, [(reference._plain_layer(plm, depth, h, m), m) for h, m in w]) for r, w in texts]
    return reference._read(model, text)


def _message(model: Any, r: Any, h: Tensor) -> Tensor:
    weight: Tensor = model.edge_projections.projections[model.edge_projections.index[r]].weight
    return weight @ h


def _graph_attention(weights: Any, own: Tensor, neighbors: list[Tensor]) -> Tensor:
    """head_j = softmax(Q K^T / sqrt(d) + B) V with the centre's state as the only query."""
    size = len(own) // weights.heads
    states = [own, *neighbors]
    parts = []
    for t in range(weights.heads):
        chunk = slice(t * size, (t + 1) * size)
        query = (weights.query @ own)[chunk]
        scores = torch.stack([query @ (weights.key @ h)[chunk] / math.sqrt(size) for h in states])
        bias = torch.tensor([1.0] + [0.0] * len(neighbors)) * weights.own_bias[t]
        alpha = torch.softmax(scores + bias, 0)
        parts.append(sum(a * (weights.value @ h)[chunk] for a, h in zip(alpha, states, strict=True)))
    return torch.cat(parts)
