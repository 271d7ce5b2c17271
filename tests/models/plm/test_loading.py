"""A folder that tries to run code: through each file that can name some, at each door that reads one."""

from __future__ import annotations

import ast
import inspect
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
from transformers.utils import hub

import heterformer
from heterformer.errors import InputError
from heterformer.models.heterformer import Heterformer
from heterformer.models.plm import loading
from heterformer.models.plm.backbone import load_backbone
from heterformer.models.plm.loading import (
    check_folder,
    load_plm,
    load_plm_config,
    load_tokenizer,
    plm_config,
    source_options,
)
from heterformer.models.plm.minilm import check_source
from heterformer.models.registry import load_model, untrained_model

SAVED = Path(__file__).parents[2] / "compatibility" / "version_0_1" / "runs" / "heterformer"
CODE = "import pathlib; pathlib.Path({mark!r}).write_text('ran')\n"
AUTO_MAP = dict.fromkeys(("AutoConfig", "AutoModel"), "evil.Evil") | {"AutoTokenizer": ["evil.Evil", None]}
READERS: dict[str, Callable[[Path], Any]] = {
    "tokenizer": load_tokenizer,
    "plm": load_plm,
    "plm_config": load_plm_config,
    "backbone": lambda folder: load_backbone(str(folder)),
    "model": load_model,
    "from_pretrained": Heterformer.from_pretrained,
    "untrained_model": untrained_model,
}
FILES = ("config.json", "tokenizer_config.json", "processor_config.json", "generation_config.json")
ENTRIES: dict[str, dict[str, Any]] = {
    "auto_map": {"auto_map": AUTO_MAP},
    "auto_map, a list": {"auto_map": ["evil.Evil", "evil.Evil"]},
    "auto_map of the PLM": {"backbone": {"model_type": "bert", "auto_map": AUTO_MAP}},
    "a kernel": {"attn_implementation": "evil/kernel"},
    "a kernel's function": {"_attn_implementation": "evil/kernel@main:run"},
    "an internal kernel": {"_attn_implementation_internal": "evil/kernel"},
    "a kernel of a part": {"attn_implementation": {"": "sdpa", "backbone": "evil/kernel"}},
    "a kernel of the PLM": {"backbone": {"model_type": "bert", "_attn_implementation": "evil/kernel"}},
    "a kernel in place of a package": {"attn_implementation": "flash_attention_2"},
    "experts": {"_experts_implementation": "evil/kernel"},
    "kernels": {"use_kernels": True},
    "trust": {"trust_remote_code": True},
    "a pipeline": {"custom_pipelines": {"x": {"impl": "evil.Evil"}}},
    "a quantizer": {"quantization_config": {"quant_method": "fp8"}},
    "weights elsewhere": {"transformers_weights": "../../weights.bin"},
    "a configuration elsewhere": {"configuration_files": ["../config.4.0.0.json"]},
    "a tokenizer's module": {"tokenizer_class": "evil.EvilTokenizer"},
    "no tokenizer": {"tokenizer_class": "AutoModel"},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A saved model that loads."""
    copy = tmp_path / "run"
    shutil.copytree(SAVED, copy)
    (copy / "evil.py").write_text(CODE.format(mark=str(tmp_path / "ran")))
    return copy


def add(path: Path, entry: dict[str, Any]) -> None:
    values = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(values | entry))


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("reader", READERS)
def test_code_is_refused_at_every_door(folder: Path, reader: str, file: str, tmp_path: Path) -> None:
    add(folder / file, ENTRIES["auto_map"])
    with pytest.raises(InputError, match=rf"{file}: 'auto_map' is .*, expected none, since it may run code"):
        READERS[reader](folder)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
def test_whatever_names_code_is_refused(folder: Path, entry: dict[str, Any]) -> None:
    check_folder(folder)
    add(folder / "config.json", entry)
    with pytest.raises(InputError, match=r"config.json: '.*' is .*, expected .*; remove the entry"):
        check_folder(folder)


def test_an_adapter_of_another_model_is_refused(folder: Path) -> None:
    add(folder / "adapter_config.json", {"peft_type": "LORA"})
    with pytest.raises(InputError, match=r"adapter_config.json: adapts another model"):
        load_model(folder)


def test_settings_that_name_no_code_are_taken(folder: Path) -> None:
    plain = {"auto_map": None, "_attn_implementation": "sdpa", "attn_implementation": None}
    add(folder / "config.json", plain | {"quantization_config": None})
    add(folder / "tokenizer_config.json", {"tokenizer_class": "BertTokenizerFast", "auto_map": {}})
    (folder / "report.json").write_text("damaged, and nothing that Transformers reads")
    check_folder(folder)


def test_the_settings_inside_a_configuration_are_checked_too() -> None:
    with pytest.raises(InputError, match="the backbone's configuration: 'auto_map'"):
        plm_config({"model_type": "bert", "auto_map": AUTO_MAP})


def test_damaged_settings_are_refused(folder: Path) -> None:
    (folder / "tokenizer_config.json").write_text("{")
    with pytest.raises(InputError, match=r"tokenizer_config.json: is damaged"):
        load_tokenizer(folder)


def test_a_folder_is_never_looked_up_elsewhere(folder: Path) -> None:
    assert source_options(folder) == {"trust_remote_code": False, "local_files_only": True}
    with pytest.raises(InputError, match="no such folder, and no name that a model hub could have"):
        source_options(folder / "typo")


def test_pickled_weights_are_not_read(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(InputError, match="safetensors"):
        load_model(folder)


def test_a_hub_s_code_is_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers import PretrainedConfig
    from transformers.models.auto import tokenization_auto

    monkeypatch.setattr(PretrainedConfig, "get_config_dict", lambda name: ({"model_type": "bert"}, {}))
    monkeypatch.setattr(tokenization_auto, "get_tokenizer_config", lambda name: {})
    monkeypatch.setattr(huggingface_hub, "get_hf_file_metadata", lambda url: None)  # it is there
    assert source_options("owner/name") == {"trust_remote_code": False}


def test_settings_on_a_hub_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers import PretrainedConfig
    from transformers.models.auto import tokenization_auto

    kernel = {"model_type": "bert", "attn_implementation": "evil/kernel"}
    monkeypatch.setattr(PretrainedConfig, "get_config_dict", lambda name: (kernel, {}))
    monkeypatch.setattr(tokenization_auto, "get_tokenizer_config", lambda name: {})
    monkeypatch.setattr(huggingface_hub, "get_hf_file_metadata", lambda url: None)  # it is there
    with pytest.raises(
        InputError, match=r"evil/model: 'attn_implementation' is 'evil/kernel', expected 'eager'"
    ):
        load_plm("evil/model")


def test_a_folder_without_a_model(tmp_path: Path) -> None:
    for read in (Heterformer.from_pretrained, load_model):
        with pytest.raises(InputError, match=r"(holds no model|a model's folder).* with a config\.json"):
            read(tmp_path)


def test_there_is_no_other_door() -> None:
    """No module but ``loading`` lets Transformers read a folder."""
    others = []
    for path in Path(heterformer.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr in (
                "from_pretrained",
                "from_config",
                "for_model",
            ):
                owner = ast.unparse(node.value)
                if "Auto" in owner or "config" in owner.lower():
                    others.append(f"{path.name}: {owner}.{node.attr}")
    assert {line.split(":")[0] for line in others} == {"loading.py"}


@pytest.mark.parametrize("name", ["runs/typo", "file.txt", "a/b/c", "./typo", "~/typo"])
def test_a_mistyped_path_asks_no_hub(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what could be a hub's name is asked for there, and no path whose folder is here could be one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    (tmp_path / "file.txt").touch()
    monkeypatch.setattr(loading, "_hub_settings", None)  # would be asked
    for read in (load_tokenizer, load_plm, Heterformer.from_pretrained, load_model):
        with pytest.raises(InputError, match=r"no name that a model hub|expected a model's folder"):
            read(name)


@pytest.mark.parametrize("name", ["bert-base-uncased", "allenai/scibert_scivocab_uncased"])
def test_names_of_a_hub_are_asked_for_there(name: str) -> None:
    check_source(name)


def test_json_of_a_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is not there, not allowed, not reachable or no JSON is nothing."""
    (tmp_path / "good.json").write_text('{"a": 1}')
    (tmp_path / "damaged.json").write_text("{")
    known = inspect.signature(hub.cached_files).parameters

    def cached_file(name: str, file: str, **options: bool) -> str | None:
        assert name == "some/model"
        assert options.keys() < known.keys(), "others would be ignored"
        assert not any(options.values())
        if file == "offline.json":
            raise OSError("cannot be reached")
        return str(tmp_path / file) if (tmp_path / file).exists() else None

    monkeypatch.setattr(hub, "cached_file", cached_file)
    assert loading.hub_json("some/model", "good.json") == {"a": 1}
    for file in ("damaged.json", "missing.json", "offline.json"):
        assert loading.hub_json("some/model", file) is None
