"""Compiled layers give what plain ones give, and are compiled once for any number of tokens."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch._dynamo.testing import CompileCounterWithBackend

from heterformer.models.contract import NodeEncoder
from tests.models.random_batches import new_model, random_batch, save_backbone

LAYERS = 2
FAMILIES = ("bert", "modernbert")


@pytest.fixture(scope="module")
def backbones(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("backbones")
    return {family: save_backbone(folder / family, family, LAYERS) for family in FAMILIES}


def vectors_and_gradients(model: NodeEncoder, seed: int) -> list[torch.Tensor]:
    model.zero_grad()
    vectors = model.encode_batch(random_batch(seed))
    vectors.sin().sum().backward()  # type: ignore[no-untyped-call]
    gradients = [p.grad.to_dense().clone() for p in model.parameters() if p.grad is not None]
    return [vectors.detach(), *gradients]


@pytest.mark.parametrize("family", FAMILIES)
def test_compiled_layers_agree(backbones: dict[str, str], family: str) -> None:
    """By the graphs that the compiler sees, run as they are: it is code generation that takes long."""
    torch.compiler.reset()
    plain, compiled = (new_model("heterformer", backbones[family], readout="mean") for _ in range(2))
    counter = CompileCounterWithBackend("aot_eager")
    compiled.compile_layers(counter)
    counts = []
    for seed in (1, 2, 3):
        pairs = zip(vectors_and_gradients(compiled, seed), vectors_and_gradients(plain, seed), strict=True)
        for found, expected in pairs:
            torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)
        counts.append(counter.frame_count)
    assert counts[0] >= LAYERS
    assert counts[-1] == counts[0], "not for every batch anew"
    assert compiled.state_dict().keys() == plain.state_dict().keys()


def test_dropout_is_drawn_in_compiled_layers(backbones: dict[str, str]) -> None:
    torch.compiler.reset()
    model = new_model("heterformer", backbones["bert"]).train()
    model.compile_layers("aot_eager")

    def vectors(seed: int) -> torch.Tensor:
        torch.manual_seed(seed)
        return model.encode_batch(random_batch(0)).detach()

    assert torch.equal(vectors(0), vectors(0))
    assert not torch.allclose(vectors(0), vectors(1), atol=1e-3)


def test_a_copy_of_a_compiled_model(backbones: dict[str, str], tmp_path: Path) -> None:
    """It is saved as any other."""
    model = new_model("heterformer", backbones["bert"])
    model.compile_layers("aot_eager")
    model.save_pretrained(tmp_path)
    assert type(model).from_pretrained(tmp_path).state_dict().keys() == model.state_dict().keys()
