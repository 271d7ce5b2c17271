"""A BERT-family PLM run on packed texts: its own weights and modules, without padding.

Linear maps and normalisations see one row per token and nothing else; attention works on blocks of
equally long texts. Where only [CLS] of a layer is read, only [CLS] is computed.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from heterformer.batches.batch import Texts
from heterformer.errors import InputError
from heterformer.models.plm.attention import attend, attend_to_states
from heterformer.models.plm.dropout import dropped
from heterformer.models.plm.feed_forward import feed_forward
from heterformer.models.plm.loading import load_plm
from heterformer.models.plm.packing import Packing, pack


def load_backbone(path_or_name: str) -> Any:
    """The PLM in a folder (or on the hub), every weight of it found and its layers known to be BERT's."""
    try:
        plm, missing = load_plm(path_or_name, dtype=torch.float32)
    except (OSError, ValueError, InputError) as error:
        raise InputError(
            f"backbone {path_or_name!r} cannot be loaded: {str(error).splitlines()[0]}"
        ) from error
    missing = sorted(name for name in missing if not name.startswith("pooler."))
    if missing:
        raise InputError(f"backbone {path_or_name!r} lacks the weights {', '.join(missing)}")
    without_pooler(plm)
    _check_layout(plm, path_or_name)
    return plm


def without_pooler(plm: Any) -> Any:
    """The pooler serves next-sentence prediction and is not used."""
    if hasattr(plm, "pooler"):
        plm.pooler = None
    return plm


def max_tokens(plm: Any) -> int:
    """The longest text the position embeddings allow."""
    return int(plm.config.max_position_embeddings) - _first_position(plm)


def embed(plm: Any, packing: Packing) -> Tensor:
    """H^(0): word, position and token type embeddings, normalised."""
    embeddings, start = plm.embeddings, _first_position(plm)
    length = packing.blocks[-1].length if packing.blocks else 0
    places = embeddings.position_embeddings.weight[start : start + length]  # (longest, e)
    places = places + embeddings.token_type_embeddings.weight[0]
    hidden = embeddings.word_embeddings(packing.texts.tokens) + F.embedding(packing.positions(), places)
    hidden = dropped(embeddings.LayerNorm(hidden), _dropout(embeddings))  # (T, e)
    if hasattr(plm, "embeddings_project"):  # ELECTRA's embeddings can be narrower than its layers
        return plm.embeddings_project(hidden)  # type: ignore[no-any-return]  # (T, d)
    return hidden


def run_layer(
    layer: Any, hidden: Tensor, packing: Packing, virtual: Tensor | None = None, first_only: bool = False
) -> Tensor:
    """One Transformer layer (Eq. 5): (T, d) to (T, d), or to the (U, d) states of [CLS] if ``first_only``.

    ``virtual`` (U, V, d) holds tokens that every token of a text attends to and that attend to nothing.
    """
    if first_only:
        hidden, mixture = _attention_of_first(layer, hidden, packing, virtual)
    else:
        mixture = _attention(layer, hidden, packing, virtual)
    attended, mlp = layer.attention.output, layer.output
    hidden = dropped(attended.dense(mixture), _dropout(attended), residual=hidden)
    hidden = attended.LayerNorm(hidden)  # LN(H + MHA(H, H~))
    outer = feed_forward(hidden, layer.intermediate.dense, layer.intermediate.intermediate_act_fn, mlp.dense)
    outer = dropped(outer, _dropout(mlp), residual=hidden)
    result: Tensor = mlp.LayerNorm(outer)  # LN(H' + MLP(H'))
    return result


def text_vectors(plm: Any, packing: Packing, readout: str) -> Tensor:
    """(U, d): what the whole PLM says of each text, in the order given; by [CLS] or the mean over tokens."""
    hidden = embed(plm, packing)  # (T, d)
    layers = plm.encoder.layer
    for number, layer in enumerate(layers):
        first_only = readout == "cls" and number == len(layers) - 1
        hidden = run_layer(layer, hidden, packing, first_only=first_only)
    return (hidden if readout == "cls" else packing.mean(hidden))[packing.rank]


def pooled(hidden: Tensor, packing: Packing, pooling: str) -> Tensor:
    """(U, d): what stands for each text in a layer, H[CLS] in the paper."""
    return packing.mean(hidden) if pooling == "mean" else hidden.index_select(0, packing.first)


def layer_states(plm: Any, texts: Texts, pooling: str, readout: str | None = None) -> Tensor:
    """(U, L, d): the state with which each text, all by itself, enters each of the L layers but the first.

    With a ``readout`` (U, L + 1, d): the PLM's vector of the text comes last.
    """
    layers = plm.encoder.layer
    if readout is not None:
        return _states_and_vector(plm, texts, pooling, readout)
    if len(layers) == 1:
        return plm.embeddings.word_embeddings.weight.new_empty(len(texts), 0, plm.config.hidden_size)  # type: ignore[no-any-return]
    packing = pack(texts)
    hidden = embed(plm, packing)  # H^(0), (T, d)
    states = []
    for layer in layers[:-2]:
        hidden = run_layer(layer, hidden, packing)  # (T, d)
        states.append(pooled(hidden, packing, pooling))
    # Nothing reads the last layer, and of the one before only what stands for the text.
    if pooling == "cls":
        states.append(run_layer(layers[-2], hidden, packing, first_only=True))  # (U, d)
    else:
        states.append(packing.mean(run_layer(layers[-2], hidden, packing)))
    return torch.stack(states, 1)[packing.rank]


def _states_and_vector(plm: Any, texts: Texts, pooling: str, readout: str) -> Tensor:
    packing, layers = pack(texts), plm.encoder.layer
    hidden = embed(plm, packing)  # H^(0), (T, d)
    states = []
    for layer in layers[:-1]:
        hidden = run_layer(layer, hidden, packing)  # (T, d)
        states.append(pooled(hidden, packing, pooling))
    hidden = run_layer(layers[-1], hidden, packing, first_only=readout == "cls")
    states.append(hidden if readout == "cls" else packing.mean(hidden))
    return torch.stack(states, 1)[packing.rank]


def _attention(layer: Any, hidden: Tensor, packing: Packing, virtual: Tensor | None) -> Tensor:
    """MHA(H, H~): queries from the text, keys and values from the text and the virtual tokens (Eq. 4)."""
    attention = layer.attention.self
    scale = attention.attention_head_size**-0.5  # of the scores (Eq. 2), cheapest applied here
    # One product for all three is faster.
    weight = torch.cat([attention.query.weight * scale, attention.key.weight, attention.value.weight])
    bias = torch.cat([attention.query.bias * scale, attention.key.bias, attention.value.bias])
    qkv = F.linear(hidden, weight, bias)  # (T, 3d)
    d = hidden.shape[1]
    virtual_kv = None if virtual is None else F.linear(virtual, weight[d:], bias[d:])  # (U, V, 2d)
    return attend(qkv, virtual_kv, packing.blocks, attention.num_attention_heads, _dropout(attention))


def _attention_of_first(
    layer: Any, hidden: Tensor, packing: Packing, virtual: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The first tokens' states, (U, d), and what ``_attention`` gives for them, at the cost of these tokens.

    The others' keys and values are never computed: ``q (W_K h) = (W_K q) h``, so the query is taken to the
    states instead, and ``sum a (W_V h) = W_V sum a h``. (The keys' bias adds the same to all scores of a
    query, which the softmax does not see.)
    """
    attention = layer.attention.self
    heads, size = attention.num_attention_heads, attention.attention_head_size
    key = attention.key.weight.view(heads, size, -1)  # (H, d/H, d)
    value = attention.value.weight.view(heads, size, -1)
    first = hidden.index_select(0, packing.first)  # (U, d)
    query = attention.query(first).view(-1, heads, size)  # (U, H, d/H)
    query = torch.einsum("uhc,hcd->uhd", query, key) * size**-0.5  # (U, H, d)
    states, totals = attend_to_states(query, hidden, virtual, packing.blocks, _dropout(attention))
    mixture = torch.einsum("uhd,hcd->uhc", states, value)  # (U, H, d/H)
    bias = totals[:, :, None] * attention.value.bias.view(heads, size)  # totals (U, H) are 1 but for dropout
    return first, (mixture + bias).flatten(1)


def _dropout(module: Any) -> float:
    return float(module.dropout.p) if module.training else 0.0


def _first_position(plm: Any) -> int:
    """0, but RoBERTa counts positions from behind its padding index."""
    padding = getattr(plm.embeddings, "padding_idx", None)
    return 0 if padding is None else int(padding) + 1


def _check_layout(plm: Any, path_or_name: str) -> None:
    """Families that differ in a detail (rotary positions, normalisation first) must not pass for BERT."""
    length = min(8, int(plm.config.max_position_embeddings) // 2)
    tokens = torch.arange(length) % (plm.config.vocab_size - 10) + 10
    try:
        packing = pack(Texts(tokens, torch.tensor([0, length])))
        with torch.no_grad():
            expected = plm(input_ids=tokens[None]).last_hidden_state[0]
            hidden = embed(plm, packing)
            for layer in plm.encoder.layer:
                hidden = run_layer(layer, hidden, packing)
        same = torch.allclose(hidden, expected, atol=1e-3)
    except (AttributeError, TypeError, RuntimeError):
        same = False
    if not same:
        raise InputError(
            f"backbone {path_or_name!r} is of type {plm.config.model_type}, whose layers are not BERT's; "
            f"expected BERT, RoBERTa, ELECTRA or another model of that layout"
        )
