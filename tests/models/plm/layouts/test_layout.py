"""Compiled layers give what plain ones give, and are compiled once for any number of tokens."""

from __future__ import annotations

import sysconfig
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._dynamo.testing import CompileCounterWithBackend
from torch._inductor import config as inductor
from torch._inductor.cpp_builder import get_cpp_compiler
from torch._inductor.exc import InvalidCxxCompiler

from heterformer.models.contract import NodeEncoder
from tests.models.random_batches import new_model, random_batch, save_backbone

LAYERS = 2
FAMILIES = ("bert", "modernbert")
CLOSE = {"atol": 1e-5, "rtol": 1e-4}


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


@pytest.mark.parametrize("options", [{}, {"lora": 2}], ids=str)
@pytest.mark.parametrize("family", FAMILIES)
def test_compiled_layers_agree(backbones: dict[str, str], family: str, options: dict[str, Any]) -> None:
    """By the graphs that the compiler sees, run as they are: it is code generation that takes long."""
    torch.compiler.reset()
    plain, compiled = (new_model("heterformer", backbones[family], readout="mean", **options) for _ in "12")
    counter = CompileCounterWithBackend("aot_eager")
    compiled.compile_layers(counter)
    counts = []
    for seed in (1, 2, 3):
        pairs = zip(vectors_and_gradients(compiled, seed), vectors_and_gradients(plain, seed), strict=True)
        for found, expected in pairs:
            torch.testing.assert_close(found, expected, **CLOSE)
        counts.append(counter.frame_count)
    assert counts[0] >= LAYERS
    assert counts[-1] == counts[0], "not for every batch anew"
    assert compiled.state_dict().keys() == plain.state_dict().keys()


def cannot_generate_code() -> str:
    """Why the compiler's own backend cannot be used, if it cannot."""
    try:
        get_cpp_compiler()
    except InvalidCxxCompiler:
        return "there is no C++ compiler"
    headers = Path(sysconfig.get_path("include"))
    return "" if (headers / "Python.h").is_file() else f"there is no Python.h in {headers}"


def test_generated_code_agrees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One layer through the backend that training uses."""
    if reason := cannot_generate_code():
        pytest.skip(reason)
    torch.compiler.reset()
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "code"))
    backbone = save_backbone(tmp_path / "backbone", layers=1)
    plain, compiled = (new_model("bert", backbone, readout="mean") for _ in "12")
    # What takes longest is trying out instruction sets and compiling headers.
    quick = {"compile_threads": 1, "cpp.vec_isa_ok": False, "cpp_cache_precompile_headers": False}
    with inductor.patch(quick):
        compiled.compile_layers()
        pairs = zip(vectors_and_gradients(compiled, 1), vectors_and_gradients(plain, 1), strict=True)
        for found, expected in pairs:
            torch.testing.assert_close(found, expected, **CLOSE)
    assert any(tmp_path.glob("code/*/*.cpp")), "code was generated"


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
