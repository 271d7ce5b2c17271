from __future__ import annotations

import torch

from tests.models.baselines.toy import Toy, assert_equal


def test_formula() -> None:
    toy = Toy.build("bert_max_sage")
    sage = toy.model.convolution
    expected = []
    for i, h in enumerate(toy.centers):
        pooled = [torch.relu(sage.lin.weight @ n + sage.lin.bias) for n in toy.text_neighbors(i)]
        largest = torch.stack(pooled).amax(0) if pooled else torch.zeros(32, dtype=torch.float64)
        expected.append(sage.lin_r.weight @ h + sage.lin_l.weight @ largest + sage.lin_l.bias)
    assert_equal(toy, expected)


def test_starts_with_the_largest_positive_coordinates() -> None:
    toy = Toy.build("bert_max_sage", aggregation_init="identity")
    toy.model.start(toy.model.convolution)
    for i, (h, vector) in enumerate(zip(toy.centers, toy.vectors(), strict=True)):
        largest = torch.stack([torch.zeros_like(h), *toy.text_neighbors(i)]).amax(0)
        torch.testing.assert_close(vector, h / 2 + largest / 2)
