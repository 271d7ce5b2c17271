"""A BERT-family PLM run on packed texts: its own weights and modules, without padding.

Linear maps and normalisations see one row per token and nothing else; attention works on blocks of
equally long texts. Where only [CLS] of a layer is read, only [CLS] is computed.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import AutoModel

from heterformer.batches.batch import Texts
from heterformer.errors import InputError
from heterformer.models.attention import attend, attend_to_states
from heterformer.models.dropout import add_dropped
from heterformer.models.packing import Packing, pack


def load_backbone(path_or_name: str) -> Any:
    """The PLM in a folder (or on the hub), every weight of it found and its layers known to be BERT's."""
    try:
        plm, report = AutoModel.from_pretrained(
            path_or_name, dtype=torch.float32, output_loading_info=True, trust_remote_code=False
        )
    except (OSError, ValueError) as error:
        raise InputError(
            f"backbone {path_or_name!r} cannot be loaded: {str(error).splitlines()[0]}"
        ) from error
    missing = sorted(name for name in report["missing_keys"] if not name.startswith("pooler."))
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
    positions = packing.positions() + _first_position(plm)  # (T,)
    hidden = plm.embeddings(input_ids=packing.texts.tokens[None], position_ids=positions[None])[0]  # (T, e)
    if hasattr(plm, "embeddings_project"):  # ELECTRA's embeddings can be narrower than its layers
        hidden = plm.embeddings_project(hidden)
    return hidden  # type: ignore[no-any-return]  # (T, d)


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
    output, mlp = layer.attention.output, layer.output
    dropout = output.dropout.p if layer.training else 0.0
    hidden = output.LayerNorm(add_dropped(output.dense(mixture), hidden, dropout))  # LN(H + MHA(H, H~))
    inner = layer.intermediate.dense(hidden)  # (T, 4d)
    outer = ActivatedLinear.apply(  # type: ignore[no-untyped-call]
        inner, mlp.dense.weight, mlp.dense.bias, layer.intermediate.intermediate_act_fn
    )
    result: Tensor = mlp.LayerNorm(add_dropped(outer, hidden, dropout))  # LN(H' + MLP(H'))
    return result


def _attention(layer: Any, hidden: Tensor, packing: Packing, virtual: Tensor | None) -> Tensor:
    """MHA(H, H~): queries from the text, keys and values from the text and the virtual tokens (Eq. 4)."""
    attention = layer.attention.self
    weight = torch.cat([attention.key.weight, attention.value.weight])  # one product for both
    bias = torch.cat([attention.key.bias, attention.value.bias])
    return attend(
        attention.query(hidden),
        F.linear(hidden, weight, bias),
        None if virtual is None else F.linear(virtual, weight, bias),
        packing.blocks,
        attention.num_attention_heads,
        attention.dropout.p if layer.training else 0.0,
    )


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
    key, value = (
        w.view(heads, size, -1) for w in (attention.key.weight, attention.value.weight)
    )  # (H, d/H, d)
    first = hidden.index_select(0, packing.first)  # (U, d)
    query = attention.query(first).view(-1, heads, size)  # (U, H, d/H)
    query = torch.einsum("uhc,hcd->uhd", query, key) * size**-0.5  # (U, H, d)
    dropout = attention.dropout.p if layer.training else 0.0
    states, totals = attend_to_states(query, hidden, virtual, packing.blocks, dropout)  # (U, H, d), (U, H)
    mixture = torch.einsum("uhd,hcd->uhc", states, value)  # (U, H, d/H)
    mixture = mixture + totals[:, :, None] * attention.value.bias.view(
        heads, size
    )  # totals: 1 but for dropout
    return first, mixture.flatten(1)


class ActivatedLinear(torch.autograd.Function):
    """``linear(activation(x))`` that keeps ``x`` alone for the backward pass.

    The activated numbers are a quarter of what a layer would otherwise keep, and cost far less to
    compute again than to store.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, activation: nn.Module) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.activation = activation
        return F.linear(activation(x), weight, bias)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        (grad,) = grads
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            activated = ctx.activation(x)
        (grad_x,) = torch.autograd.grad(activated, x, grad @ weight.to(grad.dtype))
        return grad_x, grad.mT @ activated.detach(), grad.sum(0), None


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
    except (AttributeError, TypeError):
        same = False
    if not same:
        raise InputError(
            f"backbone {path_or_name!r} is of type {plm.config.model_type}, whose layers are not BERT's; "
            f"expected BERT, RoBERTa, ELECTRA or another model of that layout"
        )
