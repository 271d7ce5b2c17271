"""What a backbone's files say about reading it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from heterformer.models.options import BertOptions, HeterformerOptions
from heterformer.models.plm.reading import PAPER, declared_options, suited_options

POOLING = "sentence_transformers.models.Pooling"
NORMALIZE = "sentence_transformers.models.Normalize"
NO_PROMPTS = {"query_prompt": "", "document_prompt": ""}
E5 = {"prompts": {"query": "query: ", "passage": "passage: "}}


def sentence_transformer(
    folder: Path, modes: dict[str, Any] | None, *kinds: str, path: str = "1_Pooling", **config: Any
) -> str:
    """A folder as sentence-transformers writes it, but for the model itself."""
    modules = [{"path": "", "type": "sentence_transformers.models.Transformer"}]
    modules += [{"path": path, "type": kind} for kind in kinds]
    folder.mkdir(exist_ok=True)
    (folder / "modules.json").write_text(json.dumps(modules))
    if modes is not None:
        (folder / "1_Pooling").mkdir()
        flags = {f"pooling_mode_{mode}": on for mode, on in modes.items()}
        (folder / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": 8} | flags))
    (folder / "config_sentence_transformers.json").write_text(json.dumps(config))
    return str(folder)


def test_minilm_is_read_as_its_folder_says() -> None:
    expected = {"neighbor_pooling": "mean", "readout": "mean", "normalize": "yes", "temperature": 0.05}
    assert suited_options("minilm") == expected | NO_PROMPTS


@pytest.mark.parametrize("normalized", [False, True])
def test_pooling_and_normalisation(tmp_path: Path, normalized: bool) -> None:
    kinds = (POOLING, NORMALIZE) if normalized else (POOLING,)
    length = (
        {"normalize": "yes", "temperature": 0.05} if normalized else {"normalize": "no", "temperature": 1.0}
    )
    mean = sentence_transformer(tmp_path / "mean", {"cls_token": False, "mean_tokens": True}, *kinds)
    expected = {"readout": "mean", "neighbor_pooling": "mean", **length, **NO_PROMPTS}
    assert declared_options(mean) == expected
    cls = sentence_transformer(tmp_path / "cls", {"cls_token": True, "mean_tokens": False}, *kinds)
    assert declared_options(cls) == {"readout": "cls", **length, **NO_PROMPTS}, (
        "inner layers are another matter"
    )
    assert suited_options(cls)["neighbor_pooling"] == "cls"
    resolved = BertOptions(backbone=mean).resolved()
    assert (resolved.readout, resolved.normalize) == ("mean", length["normalize"])
    assert BertOptions(backbone=mean, readout="cls").resolved().readout == "cls"


@pytest.mark.parametrize(
    "modes",
    [{"max_tokens": True}, {"cls_token": True, "mean_tokens": True}, {}, {"mean_tokens": "yes"}, None],
)
def test_other_poolings_are_left_open(tmp_path: Path, modes: dict[str, Any] | None) -> None:
    folder = sentence_transformer(tmp_path / "st", modes, POOLING, NORMALIZE)
    assert declared_options(folder) == NO_PROMPTS
    assert suited_options(folder) == PAPER


def test_prompts(tmp_path: Path) -> None:
    mean = {"mean_tokens": True}
    folder = sentence_transformer(tmp_path / "e5", mean, POOLING, **E5)
    options = HeterformerOptions(backbone=folder).resolved()
    assert (options.query_prompt, options.document_prompt) == ("query: ", "passage: ")
    options = HeterformerOptions(backbone=folder, query_prompt="", document_prompt="text: ").resolved()
    assert (options.query_prompt, options.document_prompt) == ("", "text: ")
    prompts = {"query": "Find: ", "clustering": "Group: "}
    folder = sentence_transformer(
        tmp_path / "default", mean, POOLING, prompts=prompts, default_prompt_name="clustering"
    )
    expected = {"query_prompt": "Find: ", "document_prompt": "Group: "}
    assert {n: v for n, v in declared_options(folder).items() if n in expected} == expected


@pytest.mark.parametrize("path", ["../1_Pooling", "/etc", 3, None])
def test_files_elsewhere_are_not_read(tmp_path: Path, path: Any) -> None:
    folder = sentence_transformer(tmp_path / "st", {"mean_tokens": True}, POOLING, path=path)
    assert declared_options(folder) == {}


@pytest.mark.parametrize("text", ["{", "[1, 2]", '{"type": 3}', "null", "[" * 100_000])
def test_damaged_files_say_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "modules.json").write_text(text)
    assert declared_options(str(tmp_path)) == {}
