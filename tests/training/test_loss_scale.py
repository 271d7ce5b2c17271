"""fp16: gradients are scaled, an overflow skips its step, and a run resumes with its scale."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from heterformer.training import loss_scale
from heterformer.training.loss_scale import INTERVAL, START, LossScale
from tests.training.runs import LAST, differ, tensors, trained


def parameter(*gradient: float) -> nn.Parameter:
    made = nn.Parameter(torch.zeros(len(gradient)))
    made.grad = torch.tensor(gradient)
    return made


def test_gradients_are_unscaled() -> None:
    dense, table = parameter(8.0, -4.0), nn.Embedding(5, 2, sparse=True)
    (table(torch.tensor([3, 1, 3])) * 2.0).sum().backward()
    untouched = nn.Parameter(torch.zeros(2))
    assert LossScale(4.0).unscale([dense, *table.parameters(), untouched])
    assert dense.grad is not None
    assert dense.grad.tolist() == [2.0, -1.0]
    assert table.weight.grad is not None
    assert table.weight.grad.to_dense().tolist() == [[0, 0], [0.5, 0.5], [0, 0], [1.0, 1.0], [0, 0]]
    assert untouched.grad is None


@pytest.mark.parametrize("bad", [float("inf"), float("-inf"), float("nan")])
def test_an_overflow_is_noticed(bad: float) -> None:
    assert not LossScale().unscale([parameter(1.0), parameter(2.0, bad)])
    assert LossScale().unscale([])


def test_the_scale_follows() -> None:
    scale = LossScale()
    scale.update(finite=False)
    assert (scale.value, scale.steps) == (START / 2, 0)
    for _ in range(INTERVAL - 1):
        scale.update(finite=True)
    assert scale.value == START / 2
    scale.update(finite=True)
    assert (scale.value, scale.steps) == (START, 0)
    scale = LossScale(1.0)
    scale.update(finite=False)
    assert scale.value == 1.0


def test_a_run_in_fp16_resumes_to_the_same_bits(tmp_path: Path) -> None:
    whole = trained(tmp_path / "whole", precision="fp16", max_steps=4)
    assert differ(whole, trained(tmp_path / "exact", max_steps=4))
    for steps in (2, 4):
        run = trained(tmp_path / "run", precision="fp16", max_steps=steps)
    assert not differ(run, whole)
    assert not differ(run, whole, LAST[1])
    position, _ = run.progress()
    assert position.loss_scale == whole.progress()[0].loss_scale <= START
    assert position.loss_scale_steps > 0


def test_steps_that_overflow_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start = trained(tmp_path / "run", precision="fp16", max_steps=1)
    before, _ = start.progress()
    weights = tensors(start, *LAST)
    monkeypatch.setattr(loss_scale.LossScale, "unscale", lambda self, parameters: False)
    run = trained(tmp_path / "run", precision="fp16", max_steps=3)
    assert all(torch.equal(weights[name], value) for name, value in tensors(run, *LAST).items())
    assert run.progress()[0].loss_scale == before.loss_scale / 4
