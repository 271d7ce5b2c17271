from __future__ import annotations

import torch

from tests.models.baselines.toy import Toy, assert_equal, backbone, mean_sage
from tests.models.random_batches import new_model, random_batch


def test_formula() -> None:
    toy = Toy.build("bert_mean_sage")
    assert_equal(toy, mean_sage(toy))


def test_starts_as_half_own_text_half_neighbours() -> None:
    model, batch = new_model("bert_mean_sage", backbone(), aggregation_init="identity"), random_batch(3)
    plain = new_model("bert", backbone())
    own = plain.encode_batch(batch)
    texts = plain.encode_batch(batch.__class__(batch.texts, 0, torch.arange(len(batch.texts)), {}, {}))
    edges = model.text_edges(batch)
    for i, vector in enumerate(model.encode_batch(batch)):
        nodes = edges[0, edges[1] == i]
        expected = own[i] / 2 + (texts[nodes].mean(0) / 2 if len(nodes) else 0)
        torch.testing.assert_close(vector, expected, atol=1e-5, rtol=0)
