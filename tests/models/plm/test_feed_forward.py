from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from heterformer.models.plm.feed_forward import Activation, feed_forward


@pytest.mark.parametrize("rows", [2, 5, 100])
@pytest.mark.parametrize("activation", [F.gelu, torch.tanh])
def test_equals_its_parts_with_gradients(rows: int, activation: Activation) -> None:
    first, second = nn.Linear(3, 7).double(), nn.Linear(7, 3).double()
    x = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    expected = second(activation(first(x)))
    inputs = [x, *first.parameters(), *second.parameters()]
    expected_gradients = torch.autograd.grad(expected.sin().sum(), inputs)
    actual = feed_forward(x, first, activation, second, rows_at_once=rows)
    torch.testing.assert_close(actual, expected)
    for gradient, other in zip(
        torch.autograd.grad(actual.sin().sum(), inputs), expected_gradients, strict=True
    ):
        torch.testing.assert_close(gradient, other)
