from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    DistilBertConfig,
    DistilBertModel,
    RobertaPreLayerNormConfig,
    RobertaPreLayerNormModel,
    RoFormerConfig,
    RoFormerModel,
)

from heterformer.batches.batch import Texts
from heterformer.errors import InputError
from heterformer.models.plm.backbone import (
    embed,
    load_backbone,
    max_tokens,
    run_layer,
)
from heterformer.models.plm.packing import pack
from tests.models.random_batches import SIZES, random_batch, save_backbone


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
    DistilBertModel(DistilBertConfig(vocab_size=60, dim=32, n_heads=4, n_layers=2)).save_pretrained(
        tmp_path / "distil"
    )
    for folder, family in (
        ("roformer", "roformer"),
        ("prenorm", "roberta-prelayernorm"),
        ("distil", "distilbert"),
    ):
        with pytest.raises(InputError, match=f"is of type {family}, whose layers are not BERT's"):
            load_backbone(str(tmp_path / folder))


@pytest.mark.parametrize(("family", "limit"), [("bert", 14), ("roberta", 12), ("electra", 14)])
def test_max_tokens(tmp_path: Path, family: str, limit: int) -> None:
    assert max_tokens(load_backbone(save_backbone(tmp_path, family))) == limit


def test_packed_layers_are_the_plm(tmp_path: Path) -> None:
    plm, texts = load_backbone(save_backbone(tmp_path)), random_batch(0).texts
    packing = pack(texts)
    hidden = embed(plm, packing)
    for layer in plm.encoder.layer[:-1]:
        hidden = run_layer(layer, hidden, packing)
    first = run_layer(plm.encoder.layer[-1], hidden, packing, first_only=True)
    hidden = run_layer(plm.encoder.layer[-1], hidden, packing)
    torch.testing.assert_close(hidden[packing.first], first, atol=1e-6, rtol=0)
    for u in range(len(texts)):
        tokens = texts.tokens[texts.offsets[u] : texts.offsets[u + 1]]
        start = int(packing.first[packing.rank[u]])
        expected = plm(input_ids=tokens[None]).last_hidden_state[0]
        torch.testing.assert_close(hidden[start : start + len(tokens)], expected, atol=2e-6, rtol=0)


def test_no_texts(tmp_path: Path) -> None:
    plm = load_backbone(save_backbone(tmp_path))
    packing = pack(Texts(torch.empty(0, dtype=torch.int64), torch.zeros(1, dtype=torch.int64)))
    hidden = run_layer(plm.encoder.layer[0], embed(plm, packing), packing)
    assert hidden.shape == (0, 32)
    hidden.sum().backward()
