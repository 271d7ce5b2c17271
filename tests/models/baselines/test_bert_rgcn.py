from __future__ import annotations

import torch

from tests.models.baselines.toy import Toy, assert_equal


def test_formula() -> None:
    toy = Toy.build("bert_rgcn")
    rgcn = toy.model.convolution
    expected = []
    for i, h in enumerate(toy.centers):
        total = h @ rgcn.root + rgcn.bias
        for number, r in enumerate(toy.model.edge_types):
            seen = [n for kind, n in toy.neighbors(i) if kind == r]
            if seen:
                total = total + torch.stack(seen).mean(0) @ rgcn.weight[number]
        expected.append(total)
    assert_equal(toy, expected)


def test_starts_as_half_own_text_and_a_share_for_each_edge_type() -> None:
    toy = Toy.build("bert_rgcn", aggregation_init="identity")
    toy.model.start(toy.model.convolution)
    for i, vector in enumerate(toy.vectors()):
        expected = toy.centers[i] / 2
        for r in toy.model.edge_types:
            seen = [n for kind, n in toy.neighbors(i) if kind == r]
            expected = expected + (torch.stack(seen).mean(0) / 6 if seen else 0)  # papers see texts by three
        torch.testing.assert_close(vector, expected)


def test_a_matrix_for_each_direction_that_ends_at_a_text() -> None:
    model = Toy.build("bert_rgcn").model
    assert {r.center for r in model.edge_types} == {"paper", "review"}
    assert len(model.convolution.weight) == len(model.edge_types) == 7
