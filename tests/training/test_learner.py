"""What a step is made of: compiled layers learn what plain ones learn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from heterformer.models.backbone_encoder import BackboneEncoder
from tests.learning import save_reader
from tests.training.runs import LAST, tensors, trained

NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


@pytest.mark.parametrize("limits", [{}, {"lora": 2}], ids=str)
def test_compiled_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limits: dict[str, Any]) -> None:
    """By the graphs that the compiler sees; without dropout, for which it draws its own numbers."""
    torch.compiler.reset()
    compile_layers, seen = BackboneEncoder.compile_layers, []

    def without_code_generation(model: BackboneEncoder) -> None:
        seen.append(model)
        compile_layers(model, "aot_eager")

    monkeypatch.setattr(BackboneEncoder, "compile_layers", without_code_generation)
    reader = save_reader(tmp_path / "reader", initializer_range=0.2, **NO_DROPOUT)
    reading = {"neighbor_pooling": "cls", "readout": "mean", "normalize": "no", "temperature": 1.0}
    start, plain, compiled = (
        tensors(trained(tmp_path / name, backbone=reader, **reading, **limits, **options), LAST[0])
        for name, options in (
            ("start", {"max_steps": 1}),
            ("plain", {"max_steps": 2}),
            ("compiled", {"max_steps": 2, "compile": True}),
        )
    )
    assert len(seen) == 1, "the third training alone"
    assert compiled.keys() == plain.keys()
    for name, expected in plain.items():
        torch.testing.assert_close(compiled[name], expected, atol=1e-5, rtol=1e-4, msg=name)
    assert any((plain[name] - start[name]).abs().max() > 1e-4 for name in plain), "a step changes more"
