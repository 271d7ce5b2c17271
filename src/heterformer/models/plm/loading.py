"""The one door through which models, configurations and tokenizers of others come in.

A folder or a hub's repository may name code to run: its own classes, kernels, adapters of yet another
repository. Whatever does is refused, before Transformers reads any of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from safetensors import safe_open
from transformers import AutoConfig, AutoModel, AutoTokenizer, PretrainedConfig

from heterformer.errors import InputError
from heterformer.files import reading
from heterformer.models.plm.hub import check_reachable
from heterformer.models.plm.minilm import NAME, check_source, trained_config
from heterformer.untrusted import short_repr

# Values of these decide which code runs or where it comes from. What is empty is harmless.
NAMES_CODE = (
    "auto_map",
    "custom_pipelines",
    "custom_generate",
    "trust_remote_code",
    "allow_all_kernels",
    "use_kernels",
    "kernel_config",
    "hub_kernels",
    "quantization_config",
    "compression_config",
    "configuration_files",
    "transformers_weights",
    "base_model_name_or_path",
)
IMPLEMENTATION = re.compile("_?(attn|experts)_implementation(_internal)?")
IMPLEMENTATIONS = ("eager", "sdpa")  # Transformers takes others from a hub if they are not installed
TOKENIZER_CLASS = re.compile("[A-Za-z0-9_]*(Tokenizer|TokenizerFast|TokenizersBackend)")
DATA = ("tokenizer.json", "vocab.json", "added_tokens.json", "special_tokens_map.json")  # words, no settings
ADAPTER = "adapter_config.json"


def load_tokenizer(path_or_name: Path | str) -> Any:
    """The tokenizer in a folder (or on the hub)."""
    options = source_options(path_or_name)
    with _reading_folder(path_or_name):
        return AutoTokenizer.from_pretrained(str(path_or_name), **options)


def load_plm(path_or_name: Path | str, **options: Any) -> tuple[Any, list[str]]:
    """The PLM in a folder (or on the hub), and the names of weights that are not there.

    Of a trained model of ours it is the text encoder.
    """
    source = source_options(path_or_name)
    if trained_config(path_or_name) is not None:
        return _trained_plm(Path(path_or_name)), []
    options |= {"output_loading_info": True}
    with _reading_folder(path_or_name):
        plm, report = AutoModel.from_pretrained(str(path_or_name), **source, **options)
    return plm, list(report["missing_keys"])


def load_plm_config(path_or_name: Path | str) -> Any:
    """The configuration of the PLM in a folder (or on the hub)."""
    source = source_options(path_or_name)
    if (trained := trained_config(path_or_name)) is not None:
        return plm_config(trained.get("backbone") or {})
    with _reading_folder(path_or_name):
        return AutoConfig.from_pretrained(str(path_or_name), **source)


def _trained_plm(folder: Path) -> Any:
    """The text encoder of a trained model, in memory of its own."""
    path, start = folder / "model.safetensors", "backbone."
    if not path.is_file():
        raise InputError(f"{folder}: has no model.safetensors; finish its training first.")
    with reading(path), safe_open(path, "pt") as file:
        names = [name for name in file.keys() if name.startswith(start)]  # noqa: SIM118
        weights = {name.removeprefix(start): file.get_tensor(name).float().clone() for name in names}
    if not weights:
        raise InputError(f"{folder}: is a model without a text encoder.")
    plm = untrained_plm(load_plm_config(folder))
    if hasattr(plm, "pooler"):
        plm.pooler = None  # our models have none
    with reading(path):
        plm.load_state_dict(weights)
    return plm.eval()


def load_config(kind: type[PretrainedConfig], path_or_name: Path | str) -> Any:
    """The configuration of one of our models."""
    options = source_options(path_or_name)
    with _reading_folder(path_or_name):
        return kind.from_pretrained(str(path_or_name), **options)


def plm_config(values: dict[str, Any]) -> Any:
    """A PLM's configuration from the values that another configuration holds."""
    check_values(values, "the backbone's configuration")
    values = dict(values)
    return AutoConfig.for_model(values.pop("model_type", "bert"), **values)


def untrained_plm(config: Any) -> Any:
    """A PLM whose weights are random."""
    return AutoModel.from_config(config, trust_remote_code=False)


def _reading_folder(path_or_name: Path | str) -> AbstractContextManager[None]:
    """Report a folder's damaged file in one sentence; what a hub answers has sentences of its own."""
    folder = Path(path_or_name)
    return reading(folder, "copy the folder again") if folder.is_dir() else nullcontext()


def source_options(path_or_name: Path | str) -> dict[str, Any]:
    """How ``from_pretrained`` is to load from there, once it is known that nothing there names code."""
    folder = Path(path_or_name)
    if folder.is_dir():
        check_folder(folder)
        return {"trust_remote_code": False, "local_files_only": True}
    check_source(path_or_name)
    check_reachable(str(path_or_name), (NAME,))
    try:
        for values in _hub_settings(str(path_or_name)):
            check_values(values, str(path_or_name))
    except OSError as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            f"{path_or_name}: no such folder, nor can a model hub provide it: {reason}"
        ) from None
    return {"trust_remote_code": False}


def _hub_settings(name: str) -> Iterator[dict[str, Any]]:
    """What a hub's repository says about its model and tokenizer."""
    from transformers.models.auto.tokenization_auto import get_tokenizer_config

    yield PretrainedConfig.get_config_dict(name)[0]
    yield get_tokenizer_config(name)


def is_hub_name(path_or_name: str) -> bool:
    """Whether it is no folder and may be a repository's name."""
    try:
        check_source(path_or_name)
    except InputError:
        return False
    return not Path(path_or_name).is_dir()


def hub_json(name: str, file: str) -> Any:
    """A JSON file of a hub's repository; nothing if it has none."""
    from transformers.utils.hub import cached_file

    quiet = ("gated_repo", "missing_entries", "connection_errors")
    options = {f"_raise_exceptions_for_{kind}": False for kind in quiet}
    try:
        path = cached_file(name, file, **options)
        return None if path is None else json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None


def check_folder(folder: Path) -> None:
    """Refuse a folder if any of its settings names code."""
    if (folder / ADAPTER).exists():
        raise InputError(f"{folder / ADAPTER}: adapts another model, expected a model of its own.")
    for path in sorted(folder.glob("*.json")):
        if path.name in DATA or path.name.endswith(".index.json"):
            continue
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            if "config" not in path.name:
                continue  # Transformers does not read it
            raise InputError(f"{path}: is damaged, expected JSON; copy the folder again.") from None
        check_values(values, str(path))


def check_values(values: Any, where: str) -> None:
    """Refuse settings that name code, however deep they hold it."""
    for name, value in _entries(values):
        if name in NAMES_CODE and value:
            raise _refused(where, name, value, "expected none, since it may run code")
        if IMPLEMENTATION.fullmatch(name):
            for one in _leaves(value):
                if one is not None and one not in IMPLEMENTATIONS:
                    expected = f"expected {' or '.join(map(repr, IMPLEMENTATIONS))}"
                    raise _refused(where, name, one, f"{expected}, since others may be code from a hub")
        if name == "tokenizer_class" and not TOKENIZER_CLASS.fullmatch(str(value or "Tokenizer")):
            raise _refused(where, name, value, "expected the name of a tokenizer of Transformers")


def _refused(where: str, name: str, value: Any, expected: str) -> InputError:
    remedy = "remove the entry if you trust the rest"
    return InputError(f"{where}: {name!r} is {short_repr(value)}, {expected}; {remedy}.")


def _entries(values: Any) -> Iterator[tuple[str, Any]]:
    waiting = [values]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            yield from one.items()
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one


def _leaves(value: Any) -> Iterator[Any]:
    if not isinstance(value, (dict, list)):
        yield value
    else:
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _leaves(inner)
