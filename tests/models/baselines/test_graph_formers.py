from __future__ import annotations

from typing import Any

import pytest
import torch

from heterformer.errors import InputError
from heterformer.models.baselines.graph_formers import GraphFormersConfig
from tests.models.baselines.literal import literal_vectors
from tests.models.baselines.toy import backbone
from tests.models.random_batches import new_model, random_batch

OPTIONS: list[dict[str, Any]] = [
    {"long_texts": "windows", "window_tokens": 5, "readout": "mean"},
    {},
    {"readout": "mean", "neighbor_pooling": "mean"},
    {"aggregation_init": "identity"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_equals_the_literal_form(options: dict[str, Any]) -> None:
    model: Any = new_model("graph_formers", backbone(), **options)
    for attention in model.attentions.values():
        torch.nn.init.normal_(attention.own_bias)
    for seed in range(3):
        batch = random_batch(seed)
        torch.testing.assert_close(
            model.encode_batch(batch), literal_vectors(model, batch), atol=1e-5, rtol=0
        )


def test_starts_as_heterformer_with_text_rich_neighbours_alone() -> None:
    """At the identity ``W_r`` changes nothing, and the bias starts at zero."""
    batch, start = random_batch(4), {"aggregation_init": "identity"}
    heterformer = new_model(
        "heterformer", backbone(), virtual_tokens="text_rich", network_readout="none", **start
    )
    found = new_model("graph_formers", backbone(), **start).encode_batch(batch)
    torch.testing.assert_close(found, heterformer.encode_batch(batch), atol=1e-6, rtol=0)


def test_an_attention_for_each_layer_but_the_first() -> None:
    model: Any = new_model("graph_formers", backbone())
    assert list(model.attentions) == ["1", "2"]


@pytest.mark.parametrize("option", ["aggregation_init", "neighbor_pooling"])
def test_a_bad_option_is_named(option: str) -> None:
    with pytest.raises(InputError, match=f"{option} is 'zero', expected one of"):
        GraphFormersConfig(**{option: "zero"})
