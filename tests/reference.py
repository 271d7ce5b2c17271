"""Algorithm 1 written out literally, as the yardstick for ``Heterformer``.

Loops over nodes; every text, or every window of a long one, padded to the length limit, with attention masks;
every neighbour of every centre through every layer, however often it occurs. Nothing here is clever, and
nothing is shared with the model but its parameters.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from heterformer.batches.batch import Batch
from heterformer.models import Heterformer
from heterformer.network.hashes import mixed, sequence_hashes
from heterformer.network.schema import EdgeType

Window = tuple[Tensor, Tensor]  # states or tokens, and which of them are real


def reference_vectors(model: Heterformer, batch: Batch) -> Tensor:
    """(B, d): what ``model.encode_batch(batch)`` must return."""
    return torch.stack([_center_vector(model, batch, i) for i in range(len(batch.centers))])


def _center_vector(model: Heterformer, batch: Batch, i: int) -> Tensor:
    """Algorithm 1 for centre v_i."""
    config, schema, plm = model.config, model.schema, model.backbone
    text_rich: list[tuple[EdgeType, list[Window]]] = []  # (r, H_{v_j} and mask of v_j)
    texts: list[int] = []  # u of each v_j
    textless: list[tuple[EdgeType, Tensor]] = []  # (r, h_{v_s})
    for r, edges in batch.neighbors.items():
        for center, node in zip(edges.center.tolist(), edges.node.tolist(), strict=True):
            if center == i and r.neighbor in schema.text_rich:
                text_rich.append((r, _embedded_windows(model, batch, node)))
                texts.append(node)
            elif center == i:
                row = int(batch.textless[r.neighbor][node])
                textless.append((r, _textless(model, r.neighbor, row)))

    text = _embedded_windows(model, batch, int(batch.centers[i]))  # H^(0), (max_tokens, d)
    for number in range(len(layers_of(plm))):
        virtual = []
        center = _state(model, text)  # h^(l), (d,)
        if number > 0 and config.virtual_tokens in ("both", "text_rich"):
            messages = [_project(model, r, _state(model, windows)) for r, windows in text_rich]
            virtual.append(_aggregate(_aggregation(model, "text_rich", number), center, messages))
        if number > 0 and config.virtual_tokens in ("both", "textless"):
            messages = [_project(model, r, h) for r, h in textless]
            virtual.append(_aggregate(_aggregation(model, "textless", number), center, messages))
        if number > 0 and config.attribute_token:
            virtual.append(center + _own_attributes(model, batch, i))
        text = [(_asymmetric_layer(plm, number, h, m, virtual), m) for h, m in text]
        text_rich = [
            (r, [(_plain_layer(plm, number, h, m), m) for h, m in windows]) for r, windows in text_rich
        ]

    vector = _read(model, text)
    added = []  # network readout, one for each kind of neighbour
    if config.network_readout in ("both", "text_rich"):
        final = [_neighbor_vector(model, batch, u) for u in texts]
        sent = [(r, _project(model, r, h)) for (r, _), h in zip(text_rich, final, strict=True)]
        added.append(_read_out(model, "text_rich", vector, sent))
    if config.network_readout in ("both", "textless"):
        sent = [(r, _project(model, r, h)) for r, h in textless]
        added.append(_read_out(model, "textless", vector, sent))
    vector = vector + sum(added)
    if config.neighbor_codes and texts:
        total = sum(_code(model, batch, u) for u in set(texts))
        vector = vector + model.neighbor_codes.gate * vector.norm() * total / math.sqrt(total @ total + 1)
    return vector / vector.norm() if config.normalize else vector


def _code(model: Heterformer, batch: Batch, u: int) -> Tensor:
    """A text's code: number by number, the sign of a product that wraps around."""
    tokens = batch.texts.tokens[batch.texts.offsets[u] : batch.texts.offsets[u + 1]].numpy()
    text = int(sequence_hashes(tokens, np.array([0, len(tokens)]))[0])
    factors = [int(mixed(np.array([i], dtype=np.uint64))[0]) | 1 for i in range(model.width)]
    signs = [-1.0 if text * factor % 2**64 >= 2**63 else 1.0 for factor in factors]
    return torch.tensor(signs, dtype=model.neighbor_codes.gate.dtype) / math.sqrt(model.width)


def _neighbor_vector(model: Heterformer, batch: Batch, u: int) -> Tensor:
    """What the readout hears of a text-rich neighbour: its text, by option with its own neighbours."""
    vector = _text_vector(model, batch, u)
    if model.config.second_hop is None:
        return vector
    total = vector
    for kind, edge_types in model.edge_types.items():
        if model.config.network_readout not in ("both", kind):
            continue
        for number, r in enumerate(edge_types):
            edges = batch.second_hop.get(r)
            pairs = [] if edges is None else zip(edges.center.tolist(), edges.node.tolist(), strict=True)
            messages = [
                _text_vector(model, batch, node)
                if r.neighbor in model.schema.text_rich
                else _textless(model, r.neighbor, int(batch.textless[r.neighbor][node]))
                for center, node in pairs
                if center == u
            ]
            if messages:
                mean = torch.stack([_project(model, r, h) for h in messages]).mean(0)
                total = total + model.neighbor_readout.gates[kind][number] * mean
    return total


def _text_vector(model: Heterformer, batch: Batch, u: int) -> Tensor:
    """A text's vector by the PLM alone."""
    windows = _embedded_windows(model, batch, u)
    for number in range(len(layers_of(model.backbone))):
        windows = [(_plain_layer(model.backbone, number, h, m), m) for h, m in windows]
    return _read(model, windows)


def _read(model: Heterformer, windows: list[Window]) -> Tensor:
    """A text's vector, of its last layer's states."""
    return _average(model.config.readout, windows)


def _average(pooling: str, windows: list[Window]) -> Tensor:
    states = [hidden[0] if pooling == "cls" else hidden[mask].mean(0) for hidden, mask in windows]
    return torch.stack(states).mean(0)


def _read_out(model: Heterformer, kind: str, vector: Tensor, sent: list[tuple[EdgeType, Tensor]]) -> Tensor:
    """``sum_r g_r mean_{N_r} W_r h_j``, or by option ``g z``."""
    gates = model.network_readout.gates[kind]
    if model.config.readout_aggregation == "attention":
        weights = model.network_readout.aggregations[kind]
        return gates * _aggregate(weights, vector, [message for _, message in sent])
    total = torch.zeros_like(vector)
    for number, edge_type in enumerate(model.edge_types[kind]):
        messages = [message for r, message in sent if r == edge_type]
        if messages:
            total = total + gates[number] * torch.stack(messages).mean(0)
    return total


def _state(model: Heterformer, windows: list[Window]) -> Tensor:
    """What stands for a text in the aggregation: H[CLS], or by option the mean over its tokens."""
    return _average(model.config.neighbor_pooling, windows)


def _embedded_windows(model: Heterformer, batch: Batch, u: int) -> list[Window]:
    """A text's windows, or the whole text; each begins and ends with the text's first and last token."""
    tokens = batch.texts.tokens[batch.texts.offsets[u] : batch.texts.offsets[u + 1]]
    size, parts = model.config.window_tokens, [tokens]
    if size is not None and len(tokens) > size:
        inner = tokens[1:-1]
        count = math.ceil(len(inner) / (size - 2))
        cuts = [i * len(inner) // count for i in range(count + 1)]
        parts = [torch.cat([tokens[:1], inner[a:b], tokens[-1:]]) for a, b in itertools.pairwise(cuts)]
    padded = [_padded(model, part) for part in parts]
    return [(_embed(model.backbone, part), mask) for part, mask in padded]


def _padded(model: Heterformer, tokens: Tensor) -> Window:
    """Token ids padded to the limit, and which of them are real."""
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
    h0 = nodes.tables[number].weight[row]
    if node_type in nodes.encodings:
        h0 = h0 + _attributes(nodes.attributes[str(number)], nodes.tables[number], row)
    return weight @ h0


def _own_attributes(model: Heterformer, batch: Batch, i: int) -> Tensor:
    """``A x`` of centre v_i; 0 if nothing is said of it."""
    for node_type, attributes in batch.attributes.items():
        for row, center in enumerate(attributes.center.tolist()):
            if center == i:
                return _attributes(model.attribute_encoders[node_type], attributes, row)
    return torch.zeros(model.width)


def _attributes(encoder: Any, table: Any, row: int) -> Tensor:
    """``A x``: number by number, category by category."""
    terms = [x * encoder.numbers[:, i] for i, x in enumerate(table.numbers[row])]
    return sum(terms + [encoder.categories[place] for place in table.categories[row].tolist()])


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


def layers_of(plm: Any) -> Any:
    """The layers of any family."""
    family = plm.config.model_type
    return {"modernbert": lambda: plm.layers, "distilbert": lambda: plm.transformer.layer}.get(
        family, lambda: plm.encoder.layer
    )()


def _plain_layer(plm: Any, number: int, hidden: Tensor, mask: Tensor) -> Tensor:
    """A PLM layer, by the PLM's own code."""
    layer, family = layers_of(plm)[number], plm.config.model_type
    blocked = torch.finfo(hidden.dtype).min
    additive = hidden.new_zeros(mask.shape).masked_fill(~mask, blocked)[None, None, None]
    if family == "mpnet":
        return layer(hidden[None], additive, plm.encoder.compute_position_bias(hidden[None]))[0][0]
    if family != "modernbert":
        return layer(hidden[None], additive)[0]
    places = torch.arange(len(hidden))
    if layer.attention_type == "sliding_attention":
        far = (places[:, None] - places).abs() > plm.config.local_attention // 2
        additive = additive.expand(1, 1, len(places), -1).masked_fill(far, blocked)
    rotation = plm.rotary_emb(hidden, places[None], layer.attention_type)
    return _last_norm(plm, number, layer(hidden[None], additive, rotation)[0])


def _last_norm(plm: Any, number: int, hidden: Tensor) -> Tensor:
    return plm.final_norm(hidden) if number == len(layers_of(plm)) - 1 else hidden


def _asymmetric_layer(plm: Any, number: int, hidden: Tensor, mask: Tensor, virtual: list[Tensor]) -> Tensor:
    """Eq. 4 and 5: queries from the text, keys and values from the text and the virtual tokens."""
    if not virtual:
        return _plain_layer(plm, number, hidden, mask)
    layer, family = layers_of(plm)[number], plm.config.model_type
    tokens = torch.cat([hidden, torch.stack(virtual)])  # (max_tokens + V, d), H~
    if family == "modernbert":
        tokens = layer.attn_norm(tokens)
        query, key, value = layer.attn.Wqkv(tokens).chunk(3, -1)
    elif family == "mpnet":
        attention = layer.attention.attn
        query, key, value = attention.q(tokens), attention.k(tokens), attention.v(tokens)
    elif family == "distilbert":
        attention = layer.attention
        query, key, value = attention.q_lin(tokens), attention.k_lin(tokens), attention.v_lin(tokens)
    else:
        attention = layer.attention.self
        query, key, value = attention.query(tokens), attention.key(tokens), attention.value(tokens)
    heads = []
    for t in range(plm.config.num_attention_heads):
        size = hidden.shape[1] // plm.config.num_attention_heads
        chunk = slice(t * size, (t + 1) * size)
        scores = _scores(plm, layer, t, query[: len(hidden), chunk], key[:, chunk], mask)
        heads.append(torch.softmax(scores, -1) @ value[:, chunk])
    return _behind_attention(plm, number, hidden, torch.cat(heads, 1))


def _scores(plm: Any, layer: Any, head: int, query: Tensor, key: Tensor, mask: Tensor) -> Tensor:
    """(n, n + V): positions matter between tokens of the text; to virtual tokens there is no distance."""
    family, n = plm.config.model_type, len(query)
    own, virtual = query @ key[:n].T, query @ key[n:].T
    distance = torch.arange(n) - torch.arange(n)[:, None]  # from query to key
    if family == "modernbert":
        turned_keys = torch.stack([_turned(plm, layer, key[j], j) for j in range(n)])
        own = torch.stack([_turned(plm, layer, query[i], i) for i in range(n)]) @ turned_keys.T
        if layer.attention_type == "sliding_attention":
            own = own.masked_fill(distance.abs() > plm.config.local_attention // 2, float("-inf"))
    own, virtual = own / math.sqrt(query.shape[1]), virtual / math.sqrt(query.shape[1])
    if family == "mpnet":
        bucket = plm.encoder.relative_position_bucket(distance)
        own = own + plm.encoder.relative_attention_bias.weight[bucket, head]
    return torch.cat([own.masked_fill(~mask, float("-inf")), virtual], 1)


def _turned(plm: Any, layer: Any, x: Tensor, place: int) -> Tensor:
    """Rotary position: each pair (x_c, x_{c + size/2}) turned by the angle ``place / theta^(2c / size)``."""
    half = len(x) // 2
    theta = plm.config.rope_parameters[layer.attention_type]["rope_theta"]
    angle = torch.tensor([place / theta ** (2 * c / len(x)) for c in range(half)])
    cos, sin = angle.cos(), angle.sin()
    return torch.cat([x[:half] * cos - x[half:] * sin, x[half:] * cos + x[:half] * sin])


def _behind_attention(plm: Any, number: int, hidden: Tensor, mixture: Tensor) -> Tensor:
    """The rest of a layer, by the PLM's own modules."""
    layer, family = layers_of(plm)[number], plm.config.model_type
    if family == "modernbert":
        hidden = hidden + layer.attn.Wo(mixture)
        return _last_norm(plm, number, hidden + layer.mlp(layer.mlp_norm(hidden)))
    if family == "distilbert":
        hidden = layer.sa_layer_norm(layer.attention.out_lin(mixture) + hidden)
        return layer.output_layer_norm(layer.ffn(hidden[None])[0] + hidden)
    if family == "mpnet":
        hidden = layer.attention.LayerNorm(layer.attention.attn.o(mixture) + hidden)
    else:
        hidden = layer.attention.output(mixture, hidden)
    return layer.output(layer.intermediate(hidden), hidden)
