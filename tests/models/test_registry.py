from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
import torch

import heterformer
from heterformer.errors import InputError
from heterformer.models.configuration import NodeEncoderConfig
from heterformer.models.contract import NodeEncoder
from heterformer.models.options import MODEL_OPTIONS, ModelName
from heterformer.models.registry import (
    MODELS,
    load_model,
    model_name,
    untrained_model,
)
from tests.models.random_batches import new_model, random_batch, save_backbone


def test_twelve_models_with_the_papers_names() -> None:
    assert tuple(MODELS) == get_args(ModelName)
    assert len(MODELS) == 12
    papers = "Heterformer MeanSAGE BERT BERT+MeanSAGE BERT+MaxSAGE BERT+GAT GraphFormers BERT+RGCN BERT+HAN"
    assert [options.display_name for options in MODEL_OPTIONS.values()] == [
        *papers.split(),
        "BERT+HGT",
        "BERT+SHGN",
        "GraphFormers++",
    ]
    assert "gpt" not in MODELS


@pytest.mark.parametrize("name", MODELS)
def test_classes_and_their_types(name: str) -> None:
    model = MODELS[name]
    assert issubclass(model, NodeEncoder)
    assert issubclass(model.config_class, NodeEncoderConfig)
    expected = name if name == "heterformer" else f"heterformer_{name}"
    assert model.config_class.model_type == expected
    assert model.__doc__ is not None


def test_looking_at_the_names_imports_nothing_heavy() -> None:
    code = (
        "import sys, heterformer.cli.main; print([m for m in ('torch', 'transformers') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_models_without_convolutions_need_no_torch_geometric() -> None:
    code = (
        "import sys; sys.modules['torch_geometric'] = None\n"
        "from heterformer.models.registry import MODELS\n"
        "print([MODELS[name].__name__ for name in ('bert', 'graph_formers', 'graph_formers_plus')])\n"
        "try: MODELS['bert_gat']\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names, complaint = found.stdout.strip().splitlines()
    assert names == "['Bert', 'GraphFormers', 'GraphFormersPlus']"
    assert complaint.startswith("InputError graph baselines need torch_geometric: pip install")


def test_a_folder_says_what_it_holds(tmp_path: Path) -> None:
    model = new_model("bert_gat", save_backbone(tmp_path / "plm"))
    model.save_pretrained(tmp_path / "model")
    assert model_name(tmp_path / "model") == "bert_gat"
    batch = random_batch(0)
    assert torch.equal(
        heterformer.load_model(tmp_path / "model").encode_batch(batch), model.encode_batch(batch)
    )
    untrained = untrained_model(tmp_path / "model")
    assert type(untrained) is type(model)
    assert not torch.allclose(untrained.encode_batch(batch), model.encode_batch(batch))


@pytest.mark.parametrize("content", [None, "{", "[]", "{}"])
def test_a_folder_without_a_model(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "config.json").write_text(content)
    with pytest.raises(InputError, match="expected a model's folder"):
        load_model(tmp_path)


@pytest.mark.parametrize("model_type", ["bert", "bert-large", ["heterformer"]])
def test_a_folder_with_another_projects_model(tmp_path: Path, model_type: object) -> None:
    """A plain BERT, too, which is a backbone and no model of ours."""
    (tmp_path / "config.json").write_text(json.dumps({"model_type": model_type}))
    expected = "expected one of heterformer, heterformer_mean_sage, "
    with pytest.raises(InputError, match=re.escape(f"model_type is {model_type!r}, {expected}")):
        load_model(tmp_path)
