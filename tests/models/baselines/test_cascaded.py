"""What the cascades over typed edges have in common."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from heterformer.batches.batch import Neighbors
from heterformer.models.options import MODEL_OPTIONS, HeterogeneousCascadedOptions
from tests.models.random_batches import new_model, random_batch, save_backbone

NAMES = [n for n, options in MODEL_OPTIONS.items() if issubclass(options, HeterogeneousCascadedOptions)]


@pytest.mark.parametrize("name", NAMES)
def test_with_a_second_hop_a_neighbour_is_what_it_would_be_as_a_centre(name: str, tmp_path: Path) -> None:
    model = new_model(name, save_backbone(tmp_path), second_hop=3, normalize=False).double()
    batch = random_batch(2, second_hops=True)
    states = model.text_states(batch.texts.first(batch.neighbor_texts))
    expected_states = states.clone()
    near = sorted({int(c) for edges in batch.second_hop.values() for c in edges.center})
    assert 0 < len(near) < batch.neighbor_texts
    for text in near:
        own = {
            r: Neighbors(torch.zeros_like(e.center[e.center == text]), e.node[e.center == text])
            for r, e in batch.second_hop.items()
        }
        alone = replace(batch, centers=torch.tensor([text]), neighbors=own, second_hop={})
        expected_states[text, 0] = model(alone, states)[0]
    expected = model(replace(batch, second_hop={}), expected_states)
    torch.testing.assert_close(model(batch, states), expected, atol=1e-9, rtol=0)
    torch.testing.assert_close(model.encode_batch(batch), expected, atol=1e-9, rtol=0)
    assert not torch.allclose(model(replace(batch, second_hop={}), states), expected, atol=1e-3)
