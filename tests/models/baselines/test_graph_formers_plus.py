from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.models.baselines.literal import literal_vectors
from tests.models.baselines.toy import backbone
from tests.models.random_batches import new_model, random_batch, save_backbone


@pytest.mark.parametrize("readout", ["cls", "mean"])
def test_equals_the_literal_form(readout: str) -> None:
    model: Any = new_model("graph_formers_plus", backbone(), readout=readout)
    for attention in model.attentions.values():
        torch.nn.init.normal_(attention.own_bias)
    for seed in range(3):
        batch = random_batch(seed)
        torch.testing.assert_close(
            model.encode_batch(batch), literal_vectors(model, batch), atol=1e-5, rtol=0
        )


def test_only_the_last_layer_is_heterogeneous() -> None:
    model: Any = new_model("graph_formers_plus", backbone())
    assert list(model.attentions) == ["1"]
    assert list(model.aggregations) == ["text_rich", "textless"]
    assert len(model.edge_projections.projections) == 7


@pytest.mark.parametrize("layers", [1, 2])
def test_shallow_backbones(tmp_path: Path, layers: int) -> None:
    model, batch = new_model("graph_formers_plus", save_backbone(tmp_path, layers=layers)), random_batch(1)
    torch.testing.assert_close(model.encode_batch(batch), literal_vectors(model, batch), atol=1e-5, rtol=0)
