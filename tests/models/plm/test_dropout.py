from __future__ import annotations

import pytest
import torch

from heterformer.models.plm.dropout import dropped, keep_mask, keep_scale


@pytest.mark.parametrize("dropout", [0.1, 0.5, 0.9])
def test_the_right_share_is_kept(dropout: float) -> None:
    torch.manual_seed(0)
    keep = keep_mask(torch.empty(333, 301), dropout)  # a size that is no multiple of four
    assert keep.shape == (333, 301)
    assert abs(float(keep.float().mean()) - (1 - dropout)) < 0.005
    assert abs(keep_scale(dropout) - 1 / (1 - dropout)) < 1e-3
    assert (
        abs(float(keep.float().mean(0).std()) - (dropout * (1 - dropout) / 333) ** 0.5) < 0.003
    )  # independent


def test_all_four_entries_of_a_draw_are_independent() -> None:
    torch.manual_seed(0)
    keep = keep_mask(torch.empty(100_000, 4), 0.5).double()
    correlation = torch.corrcoef(keep.T) - torch.eye(4)
    assert float(correlation.abs().max()) < 0.02


def test_gradients() -> None:
    x, residual = (torch.randn(5, 7, dtype=torch.float64, requires_grad=True) for _ in range(2))

    def function(x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(0)
        return dropped(x, 0.4, residual) + dropped(x, 0.1)

    assert torch.autograd.gradcheck(function, (x, residual))


def test_dropped_or_scaled() -> None:
    torch.manual_seed(0)
    total = dropped(torch.ones(1000), 0.25, residual=torch.full((1000,), 3.0))
    assert {round(float(v), 4) for v in total.unique()} == {3.0, 4.3333}
    assert {round(float(v), 4) for v in dropped(torch.ones(1000), 0.25).unique()} == {0.0, 1.3333}
    assert torch.equal(dropped(torch.ones(3), 0.0, torch.ones(3)), torch.full((3,), 2.0))
    assert torch.equal(dropped(torch.ones(3), 0.0), torch.ones(3))
