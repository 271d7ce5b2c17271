from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    DebertaV2Config,
    DebertaV2Model,
    RobertaPreLayerNormConfig,
    RobertaPreLayerNormModel,
    RoFormerConfig,
    RoFormerModel,
)

from heterformer.errors import InputError
from heterformer.models.plm.backbone import load_backbone, max_tokens
from tests.models.random_batches import SIZES, save_backbone

LIMITS = {
    "bert": 14,
    "roberta": 12,
    "xlm-roberta": 12,
    "electra": 14,
    "distilbert": 14,
    "mpnet": 12,
    "modernbert": 14,
}


def test_missing_weights_are_listed(tmp_path: Path) -> None:
    save_backbone(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    del weights["encoder.layer.1.output.dense.weight"], weights["embeddings.LayerNorm.bias"]
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    names = "embeddings.LayerNorm.bias, encoder.layer.1.output.dense.weight"
    with pytest.raises(InputError, match=f"lacks the weights {names}$"):
        load_backbone(str(tmp_path))


def test_a_missing_pooler_is_not_missed(tmp_path: Path) -> None:
    save_backbone(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    kept = {name: w for name, w in weights.items() if not name.startswith("pooler.")}
    assert len(kept) < len(weights)
    save_file(kept, tmp_path / "model.safetensors", metadata={"format": "pt"})
    assert load_backbone(str(tmp_path)).pooler is None


def test_no_such_backbone(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"backbone '.*/nothing' cannot be loaded: "):
        load_backbone(str(tmp_path / "nothing"))


def test_other_layouts_are_refused(tmp_path: Path) -> None:
    torch.manual_seed(0)
    sizes = SIZES | {"num_hidden_layers": 2}
    RoFormerModel(RoFormerConfig(**sizes)).save_pretrained(tmp_path / "roformer")
    RobertaPreLayerNormModel(RobertaPreLayerNormConfig(**sizes)).save_pretrained(tmp_path / "prenorm")
    DebertaV2Model(DebertaV2Config(**sizes, relative_attention=True)).save_pretrained(tmp_path / "deberta")
    for folder, family in (
        ("roformer", "roformer"),
        ("prenorm", "roberta-prelayernorm"),
        ("deberta", "deberta-v2"),
    ):
        with pytest.raises(InputError, match=f"is of type {family}, whose layout is not known"):
            load_backbone(str(tmp_path / folder))


@pytest.mark.parametrize(("family", "limit"), LIMITS.items())
def test_max_tokens(tmp_path: Path, family: str, limit: int) -> None:
    assert max_tokens(load_backbone(save_backbone(tmp_path, family))) == limit
