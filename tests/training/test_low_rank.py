"""A run with low-rank adapters: resumes with them, and leaves a model without them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from heterformer.models.plm.low_rank import ORIGINAL, merged
from heterformer.models.registry import load_model
from heterformer.training.run import Run
from heterformer.training.train import train
from tests.learning import tiny_network, tiny_options, tiny_reader
from tests.training.runs import LAST, differ, trained


def test_a_run_with_adapters(tmp_path: Path) -> None:
    options = tiny_options(tiny_reader())
    options = replace(options, model=replace(options.model, lora=2), max_steps=2)
    train(tiny_network(), tmp_path / "run", options)
    train(tiny_network(), tmp_path / "run", replace(options, max_steps=4))
    run, start = Run(tmp_path / "run"), load_file(Path(tiny_reader()) / "model.safetensors")
    weights = load_file(run.weights)
    adapted = [name for name in weights if name.endswith(ORIGINAL)]
    assert adapted
    for name in adapted:
        plain = name.removeprefix("backbone.").removesuffix(ORIGINAL) + ".weight"
        assert torch.equal(weights[name], start[plain]), "frozen"
    expected = merged(weights)
    for model in (load_model(run.path), run.model()):
        found = model.state_dict()
        assert found.keys() == expected.keys()
        assert all(torch.equal(found[name], expected[name]) for name in expected)


@pytest.mark.parametrize("limits", [{"lora": 2}, {"freeze": "backbone"}], ids=str)
def test_a_run_resumes_as_if_it_had_not_stopped(tmp_path: Path, limits: dict[str, Any]) -> None:
    whole = trained(tmp_path / "whole", max_steps=5, **limits)
    trained(tmp_path / "stopped", max_steps=2, **limits)
    resumed = trained(tmp_path / "stopped", max_steps=5, **limits)
    last = load_file(resumed.path / LAST[0])
    assert any(name.endswith(ORIGINAL) for name in last) is ("lora" in limits)
    assert not differ(resumed, whole)
    assert not differ(resumed, whole, LAST[1])
