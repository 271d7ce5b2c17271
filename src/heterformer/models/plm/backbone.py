"""A pretrained language model: loaded, checked, and run on packed texts by the layout of its family."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from heterformer.batches.batch import Texts
from heterformer.errors import InputError
from heterformer.models.plm.layouts import layout_class, layout_of
from heterformer.models.plm.loading import load_plm
from heterformer.models.plm.packing import Packing, pack


def load_backbone(path_or_name: str) -> Any:
    """The PLM in a folder (or on the hub), every weight of it found and its layout known."""
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
    """The longest text the PLM reads."""
    return layout_class(plm).max_tokens(plm)


def text_vectors(plm: Any, packing: Packing, readout: str) -> Tensor:
    """(U, d): what the whole PLM says of each text, in the order given; by [CLS] or the mean over tokens."""
    layout = layout_of(plm, packing)
    hidden, last = layout.embed(), len(layout.layers) - 1  # (T, d)
    for depth in range(len(layout.layers)):
        hidden = layout.run_layer(depth, hidden, first_only=readout == "cls" and depth == last)
    return (hidden if readout == "cls" else packing.mean(hidden))[packing.rank]


def pooled(hidden: Tensor, packing: Packing, pooling: str) -> Tensor:
    """(U, d): what stands for each text in a layer, H[CLS] in the paper."""
    if pooling == "mean":
        return packing.mean(hidden)
    return packing.average_windows(hidden.index_select(0, packing.first_token))


def layer_states(plm: Any, packing: Packing, pooling: str, readout: str | None = None) -> Tensor:
    """(U, L, d): the state with which each text, all by itself, enters each of the L layers but the first.

    With a ``readout`` (U, L + 1, d): the PLM's vector of the text comes last.
    """
    layout = layout_of(plm, packing)
    # Nothing reads the last layer without a readout, and of the last one run only what stands for the text.
    count = len(layout.layers) - (readout is None)
    if count == 0:
        return plm.get_input_embeddings().weight.new_empty(len(packing.rank), 0, plm.config.hidden_size)  # type: ignore[no-any-return]
    hidden = layout.embed()  # H^(0), (T, d)
    states = []
    for depth in range(count - 1):
        hidden = layout.run_layer(depth, hidden)  # (T, d)
        states.append(pooled(hidden, packing, pooling))
    by_cls = (readout or pooling) == "cls"
    hidden = layout.run_layer(count - 1, hidden, first_only=by_cls)
    states.append(hidden if by_cls else packing.mean(hidden))  # (U, d)
    return torch.stack(states, 1)[packing.rank]


def _check_layout(plm: Any, path_or_name: str) -> None:
    """Families that differ in a detail (rotary positions, normalisation first) must not pass for BERT."""
    length = min(8, int(plm.config.max_position_embeddings) // 2)
    tokens = torch.arange(length) % (plm.config.vocab_size - 10) + 10
    try:
        layout = layout_of(plm, pack(Texts(tokens, torch.tensor([0, length]))))
        with torch.no_grad():
            expected = plm(input_ids=tokens[None]).last_hidden_state[0]
            hidden = layout.embed()
            for depth in range(len(layout.layers)):
                hidden = layout.run_layer(depth, hidden)
        same = torch.allclose(hidden, expected, atol=1e-3)
    except (AttributeError, TypeError, RuntimeError):
        same = False
    if not same:
        raise InputError(
            f"backbone {path_or_name!r} is of type {plm.config.model_type}, whose layout is not known; "
            f"expected BERT, RoBERTa, XLM-R, ELECTRA or another model of BERT's layout, DistilBERT, MPNet "
            f"or ModernBERT."
        )
