"""Algorithm 1 written out literally, as the yardstick for ``Heterformer``.

Loops over nodes; every text padded to the length limit, with attention masks; every neighbour of every
centre through every layer, however often it occurs. Nothing here is clever, and nothing is shared with
the model but its parameters.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from heterformer.batches.batch import Batch
from heterformer.models import Heterformer
from heterformer.network.schema import EdgeType


def reference_vectors(model: Heterformer, batch: Batch) -> Tensor:
    """(B, d): what ``model.encode_batch(batch)`` must return."""
    return torch.stack([_center_vector(model, batch, i) for i in range(len(batch.centers))])


def _center_vector(model: Heterformer, batch: Batch, i: int) -> Tensor:
    """Algorithm 1 for centre v_i."""
    config, schema, plm = model.config, model.schema, model.backbone
    tokens, mask = _padded_text(model, batch, int(batch.centers[i]))
    text_rich: list[tuple[EdgeType, Tensor, Tensor]] = []  # (r, H_{v_j}, mask of v_j)
    textless: list[tuple[EdgeType, Tensor]] = []  # (r, h_{v_s})
    for r, edges in batch.neighbors.items():
        for center, node in zip(edges.center.tolist(), edges.node.tolist(), strict=True):
            if center == i and r.neighbor in schema.text_rich:
                neighbor_tokens, neighbor_mask = _padded_text(model, batch, node)
                text_rich.append((r, _embed(plm, neighbor_tokens), neighbor_mask))
            elif center == i:
                row = int(batch.textless[r.neighbor][node])
                textless.append((r, _textless(model, r.neighbor, row)))

    hidden = _embed(plm, tokens)  # H^(0), (max_tokens, d)
    for number, layer in enumerate(plm.encoder.layer):
        virtual = []
        center = _state(model, hidden, mask)  # h^(l), (d,)
        if number > 0 and config.virtual_tokens in ("both", "text_rich"):
            messages = [_project(model, r, _state(model, h, m)) for r, h, m in text_rich]
            virtual.append(_aggregate(_aggregation(model, "text_rich", number), center, messages))
        if number > 0 and config.virtual_tokens in ("both", "textless"):
            messages = [_project(model, r, h) for r, h in textless]
            virtual.append(_aggregate(_aggregation(model, "textless", number), center, messages))
        hidden = _asymmetric_layer(layer, hidden, mask, virtual)
        text_rich = [(r, _plain_layer(layer, h, m), m) for r, h, m in text_rich]

    vector = _read(model, hidden, mask)
    added = []  # network readout: g z, one for each kind of neighbour
    if config.network_readout in ("both", "text_rich"):
        messages = [_project(model, r, _read(model, h, m)) for r, h, m in text_rich]
        added.append(_gated(model, "text_rich", vector, messages))
    if config.network_readout in ("both", "textless"):
        messages = [_project(model, r, h) for r, h in textless]
        added.append(_gated(model, "textless", vector, messages))
    vector = vector + sum(added)
    return vector / vector.norm() if config.normalize else vector


def _read(model: Heterformer, hidden: Tensor, mask: Tensor) -> Tensor:
    """A text's vector, of its last layer's states."""
    return hidden[0] if model.config.readout == "cls" else hidden[mask].mean(0)


def _gated(model: Heterformer, kind: str, vector: Tensor, messages: list[Tensor]) -> Tensor:
    readout = model.network_readout
    return readout.gates[kind] * _aggregate(readout.aggregations[kind], vector, messages)


def _state(model: Heterformer, hidden: Tensor, mask: Tensor) -> Tensor:
    """What stands for a text in the aggregation: H[CLS], or by option the mean over its tokens."""
    return hidden[0] if model.config.neighbor_pooling == "cls" else hidden[mask].mean(0)


def _padded_text(model: Heterformer, batch: Batch, u: int) -> tuple[Tensor, Tensor]:
    """Token ids padded to the limit, and which of them are real."""
    tokens = batch.texts.tokens[batch.texts.offsets[u] : batch.texts.offsets[u + 1]]
    limit = model.schema.max_tokens
    padded = torch.full((limit,), model.backbone.config.pad_token_id)
    padded[: len(tokens)] = tokens
    return padded, torch.arange(limit) < len(tokens)


def _embed(plm: Any, tokens: Tensor) -> Tensor:
    hidden = plm.embeddings(input_ids=tokens[None])
    if hasattr(plm, "embeddings_project"):
        hidden = plm.embeddings_project(hidden)
    return hidden[0]


def _textless(model: Heterformer, node_type: str, row: int) -> Tensor:
    """Eq. 9."""
    nodes = model.textless
    number = model.schema.textless.index(node_type)
    weight = nodes.projections[number if model.config.heterogeneous_projection else 0].weight
    return weight @ nodes.tables[number].weight[row]


def _project(model: Heterformer, r: EdgeType, h: Tensor) -> Tensor:
    """Eq. 8."""
    number = model.edge_projections.index[r] if model.config.heterogeneous_projection else 0
    return model.edge_projections.projections[number].weight @ h


def _aggregation(model: Heterformer, kind: str, number: int) -> Any:
    """The weights for one kind of token in one layer."""
    kind = "any_kind" if model.config.share_aggregation_kinds else kind
    return model.aggregations[
        f"{kind}_any_layer" if model.config.share_aggregation_layers else f"{kind}_{number}"
    ]


def _aggregate(weights: Any, center: Tensor, messages: list[Tensor]) -> Tensor:
    """Eq. 6 and 7: head by head, neighbour by neighbour."""
    size = len(center) // weights.heads
    query = weights.query @ center
    entries = [center, *messages]
    keys = [weights.key @ h for h in entries]
    values = [weights.value @ h for h in entries]
    heads = []
    for t in range(weights.heads):
        chunk = slice(t * size, (t + 1) * size)
        alpha = torch.softmax(torch.stack([query[chunk] @ k[chunk] / math.sqrt(size) for k in keys]), 0)
        heads.append(sum(a * v[chunk] for a, v in zip(alpha, values, strict=True)))
    return torch.cat(heads)


def _plain_layer(layer: Any, hidden: Tensor, mask: Tensor) -> Tensor:
    """A PLM layer, by the PLM's own code."""
    additive = torch.zeros(mask.shape).masked_fill(~mask, torch.finfo(torch.float32).min)
    return layer(hidden[None], additive[None, None, None])[0]


def _asymmetric_layer(layer: Any, hidden: Tensor, mask: Tensor, virtual: list[Tensor]) -> Tensor:
    """Eq. 4 and 5: queries from the text, keys and values from the text and the virtual tokens."""
    if not virtual:
        return _plain_layer(layer, hidden, mask)
    attention = layer.attention.self
    tokens = torch.cat([hidden, torch.stack(virtual)])  # (max_tokens + V, d), H~
    seen = torch.cat([mask, torch.ones(len(virtual), dtype=torch.bool)])
    query, key, value = attention.query(hidden), attention.key(tokens), attention.value(tokens)
    size = attention.attention_head_size
    heads = []
    for t in range(attention.num_attention_heads):
        chunk = slice(t * size, (t + 1) * size)
        scores = (query[:, chunk] @ key[:, chunk].T / math.sqrt(size)).masked_fill(~seen, float("-inf"))
        heads.append(torch.softmax(scores, -1) @ value[:, chunk])
    hidden = layer.attention.output(torch.cat(heads, 1), hidden)
    return layer.output(layer.intermediate(hidden), hidden)
