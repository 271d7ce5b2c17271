"""Low-rank adapters are read wherever a weight is read, alone learn, and are gone from a saved model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from heterformer.errors import OptionError
from heterformer.models.contract import NodeEncoder
from heterformer.models.options import MODEL_OPTIONS, HeterformerOptions
from heterformer.models.plm.low_rank import is_adapter
from heterformer.models.registry import load_model, untrained_model
from tests.models.random_batches import new_model, random_batch, save_backbone
from tests.reference import reference_vectors

FAMILIES = ("bert", "distilbert", "mpnet", "modernbert")
MAPS = {"bert": 6, "distilbert": 6, "mpnet": 6, "modernbert": 4}  # linear maps of a layer
LAYERS = 3
ADAPTED = [name for name, options in MODEL_OPTIONS.items() if "lora" in options.option_names()]


@pytest.fixture(scope="module")
def backbones(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("backbones")
    return {family: save_backbone(folder / family, family, LAYERS) for family in FAMILIES}


def adapters(model: NodeEncoder) -> dict[str, Any]:
    return {name: p for name, p in model.named_parameters() if is_adapter(name)}


def moved(model: NodeEncoder) -> NodeEncoder:
    """As after training: B is not 0 any more."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in adapters(model).values():
            parameter += 0.3 * torch.randn(parameter.shape, generator=generator)
    return model


@pytest.mark.parametrize("name", ADAPTED)
@pytest.mark.parametrize("family", FAMILIES)
def test_adapters_are_used_and_learn_alone(backbones: dict[str, str], family: str, name: str) -> None:
    batch = random_batch(3)
    plain, model = new_model(name, backbones[family]), new_model(name, backbones[family], lora=2)
    start = plain.encode_batch(batch)
    assert torch.equal(model.encode_batch(batch), start), "B starts at 0"
    vectors = moved(model).encode_batch(batch)
    assert not torch.allclose(vectors, start, atol=1e-2)
    (vectors * torch.randn(vectors.shape, generator=torch.Generator().manual_seed(0))).sum().backward()
    found = adapters(model)
    assert len(found) == 2 * LAYERS * MAPS[family]
    for parameter_name, parameter in found.items():
        assert parameter.grad is not None, parameter_name
        assert parameter.grad.abs().max() > 0, parameter_name
    for parameter_name, parameter in model.backbone.named_parameters():
        assert parameter.requires_grad is is_adapter(parameter_name)
        assert is_adapter(parameter_name) or parameter.grad is None


def test_the_reference_reads_the_same_weights(backbones: dict[str, str]) -> None:
    model: Any = moved(new_model("heterformer", backbones["bert"], lora=3))
    expected = reference_vectors(model, random_batch(3))
    torch.testing.assert_close(model.encode_batch(random_batch(3)), expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize(("targets", "maps"), [("attention", 4), ("mlp", 2), ("all", 6)])
def test_targets(backbones: dict[str, str], targets: str, maps: int) -> None:
    for family in ("bert", "distilbert", "mpnet"):
        model = new_model("heterformer", backbones[family], lora=2, lora_targets=targets)
        assert len(adapters(model)) == 2 * LAYERS * maps
    modern = new_model("heterformer", backbones["modernbert"], lora=2, lora_targets=targets)
    assert len(adapters(modern)) == 2 * LAYERS * MAPS["modernbert"] // (1 if targets == "all" else 2)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_saved_model_has_none(backbones: dict[str, str], family: str, tmp_path: Path) -> None:
    model, batch = moved(new_model("heterformer", backbones[family], lora=2)), random_batch(3)
    model.save_pretrained(tmp_path)
    loaded = load_model(tmp_path)
    assert not adapters(loaded)
    assert loaded.state_dict().keys() == new_model("heterformer", backbones[family]).state_dict().keys()
    torch.testing.assert_close(loaded.encode_batch(batch), model.encode_batch(batch), atol=1e-5, rtol=0)
    assert adapters(model), "saving leaves the model as it is"


def test_a_checkpoint_has_them(backbones: dict[str, str], tmp_path: Path) -> None:
    """It fits a model with adapters, to go on, and one without; a plain one fits a model with adapters."""
    model, batch = moved(new_model("heterformer", backbones["bert"], lora=2)), random_batch(3)
    expected = model.encode_batch(batch)
    again = new_model("heterformer", backbones["bert"], lora=2)
    again.load_state_dict(model.state_dict())
    assert torch.equal(again.encode_batch(batch), expected)
    model.config.save_pretrained(tmp_path)
    plain = untrained_model(tmp_path)
    plain.load_state_dict(model.state_dict())
    plain.eval()
    assert not adapters(plain)
    torch.testing.assert_close(plain.encode_batch(batch), expected, atol=1e-5, rtol=0)
    fresh = moved(new_model("heterformer", backbones["bert"], lora=2))
    fresh.load_state_dict(plain.state_dict())
    assert len(adapters(fresh)) == 2 * LAYERS * 6
    torch.testing.assert_close(fresh.encode_batch(batch), expected, atol=1e-5, rtol=0)


def test_learning_rates(backbones: dict[str, str]) -> None:
    model = new_model("heterformer", backbones["bert"], lora=2)
    groups = model.parameter_groups()
    assert groups["backbone"] == []
    assert {id(p) for p in adapters(model).values()} < {id(p) for p in groups["new"]}


def test_a_frozen_backbone(backbones: dict[str, str]) -> None:
    model = new_model("heterformer", backbones["bert"], freeze="backbone")
    model.encode_batch(random_batch(3)).sum().backward()
    assert all(p.grad is None for p in model.backbone.parameters())
    assert model.parameter_groups()["backbone"] == []
    assert any(p.grad is not None for p in model.parameter_groups()["new"])
    with pytest.raises(OptionError, match="freeze is 'backbone', but Bert has nothing else to train"):
        new_model("bert", backbones["bert"], freeze="backbone")


def test_contradictions() -> None:
    with pytest.raises(OptionError, match="freeze is 'backbone' beside lora 4"):
        HeterformerOptions(lora=4, freeze="backbone")
    with pytest.raises(OptionError, match="lora is 0, expected a positive whole number"):
        HeterformerOptions(lora=0)
