"""Transformers' Auto classes find our models after ``import heterformer``, which imports nothing heavy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from transformers import AutoConfig, AutoModel
from transformers.models.auto import configuration_auto

from heterformer.auto_classes import _Configurations, register_when_imported
from heterformer.models.options import MODEL_OPTIONS
from heterformer.models.registry import MODELS
from tests.learning import tiny_network, tiny_reader


@pytest.mark.parametrize("name", MODELS)
def test_every_model_is_found_by_its_folder(name: str, tmp_path: Path) -> None:
    model = MODELS[name].from_backbone(tiny_reader(), tiny_network())
    model.save_pretrained(tmp_path)
    again = AutoModel.from_pretrained(tmp_path)
    assert type(again) is MODELS[name]
    assert type(AutoConfig.from_pretrained(tmp_path)) is MODELS[name].config_class
    for key, value in model.state_dict().items():
        assert torch.equal(again.state_dict()[key], value)


def test_a_class_is_imported_when_it_is_looked_up() -> None:
    lazy = _Configurations({"heterformer_bert": "heterformer.models.baselines.bert", "other": int})
    assert "heterformer_bert" in lazy
    assert lazy["other"] is int
    table = configuration_auto.CONFIG_MAPPING
    assert isinstance(table._extra_content, _Configurations)
    types = {model.model_type() for model in MODEL_OPTIONS.values()}
    assert types <= set(table.keys())
    assert {table[model_type].model_type for model_type in types} == types


def test_it_is_done_once() -> None:
    before = dict.copy(configuration_auto.CONFIG_MAPPING._extra_content)
    register_when_imported()
    assert dict.copy(configuration_auto.CONFIG_MAPPING._extra_content) == before


ORDERS = (
    "import heterformer, transformers",
    "import transformers.models.auto.configuration_auto, heterformer",
)


@pytest.mark.parametrize("order", ORDERS)
def test_in_whatever_order_they_are_imported(order: str) -> None:
    """In a new process: here, everything is imported. The table alone needs no PyTorch models."""
    code = f"""
import sys
{order}
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
assert "heterformer_bert_hgt" in CONFIG_MAPPING and "heterformer" in CONFIG_MAPPING
assert "heterformer.models.heterformer" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)
