"""Tiny trainings: a backbone that reads the synthetic network's words, its network, and runs on them."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import normalizers
from torch import Tensor
from transformers import AutoTokenizer, BertConfig, BertModel

from heterformer.batches.batch import Texts
from heterformer.datasets.synthetic import SyntheticOptions, write_synthetic
from heterformer.datasets.synthetic_words import VOCABULARY
from heterformer.models import Heterformer
from heterformer.models.options import MODEL_OPTIONS, EveryModelOptions
from heterformer.network.build import build_network
from heterformer.network.build.frames import temporary_folder
from heterformer.network.spec import NetworkSpec
from heterformer.network.store import Network
from heterformer.network.tokens import PackedTokens, open_tokens
from heterformer.progress import quiet_transformers
from heterformer.training.options import TrainingOptions
from heterformer.training.warm_up_options import WarmUpOptions
from tests.networks import SPECIAL, new_tokenizer
from tests.processor import without_bf16

WORDS = (*SPECIAL, *dict.fromkeys(word for phrase in VOCABULARY for word in phrase.split()))


def save_reader(
    folder: Path,
    layers: int = 2,
    width: int = 16,
    heads: int = 2,
    seed: int = 0,
    words: Sequence[str] = WORDS,
    **more: Any,
) -> str:
    """A randomly initialised BERT with one token per word of the synthetic titles, and its tokenizer."""
    quiet_transformers()  # its bar would be among the messages of a test that reads them
    torch.manual_seed(seed)
    sizes = {"num_hidden_layers": layers, "hidden_size": width, "num_attention_heads": heads}
    sizes |= {"intermediate_size": 2 * width, "max_position_embeddings": 32}
    config = BertConfig(vocab_size=len(words), **sizes | more)
    BertModel(config).save_pretrained(folder)
    tokenizer = new_tokenizer(words)
    tokenizer.backend_tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.save_pretrained(folder)
    return str(folder)


def sharp_reader(folder: Path, seed: int, words: Sequence[str] = WORDS) -> str:
    """A reader without dropout that starts large enough for words to matter at once."""
    no_dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    return save_reader(folder, width=64, heads=4, seed=seed, words=words, initializer_range=0.1, **no_dropout)


def synthetic_network(folder: Path, papers: int = 200, **more: Any) -> Network:
    """The synthetic network, built in ``folder / "network"`` from the tables in ``folder / "tables"``."""
    spec = write_synthetic(folder / "tables", SyntheticOptions(papers=papers, **more))
    return build_network(NetworkSpec.load(spec), folder / "network", data=spec.parent)


def tiny_options(backbone: str, **changes: Any) -> TrainingOptions:
    """A training of a few quick steps; ``changes`` are options of the training or of any model."""
    model = MODEL_OPTIONS[changes.pop("model", "heterformer")]
    usual = {"backbone": backbone, "textless_dim": 8}
    if backbone == tiny_reader():  # whose texts need not be looked at
        usual |= {"neighbor_pooling": "cls", "readout": "cls", "normalize": "no", "temperature": 1.0}
    values = {name: value for name, value in usual.items() if name in model.option_names()}
    values |= {name: changes.pop(name) for name in tuple(changes) if name in model.option_names()}
    changes = {n: v for n, v in changes.items() if n not in EveryModelOptions.option_names()}
    return replace(
        TrainingOptions(
            model=model(**values),
            warm_up=WarmUpOptions(warm_up_epochs=2, warm_up_batch_size=128),
            batch_size=16,
            learning_rate=1e-3,
            new_learning_rate=1e-3,
            textless_learning_rate=1e-2,
            device="cpu",
            neighbor_dropout=0.0,  # what a few steps of a tiny model learn is to show
            neighbor_states="live",  # so that a budget may grow in the middle of an epoch
        ),
        **changes,
    )


@cache
def tiny_reader() -> str:
    """The folder of a reader that is small enough for a step to take milliseconds."""
    return save_reader(temporary_folder(), initializer_range=0.2)


@cache
def tiny_network() -> Network:
    """200 papers; nobody may change it."""
    return synthetic_network(temporary_folder())


@cache
def tiny_tokens() -> PackedTokens:
    """The texts of ``tiny_network`` as ``tiny_reader`` reads them."""
    return open_tokens(tiny_network(), AutoTokenizer.from_pretrained(tiny_reader()))


def tiny_model(seed: int = 0, **options: Any) -> Heterformer:
    """A new model of ``tiny_reader`` for ``tiny_network``."""
    reader, network = tiny_reader(), tiny_network()  # made on first use, with random numbers of their own
    torch.manual_seed(seed)
    return Heterformer.from_backbone(reader, network, **{"textless_dim": 8} | options)


# --- Processes that a test can kill ----------------------------------------------------------------------


def count_texts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list that grows by the number of texts whenever Heterformer reads the states of some."""
    counts, read = list[int](), Heterformer.text_states

    def counted(model: Heterformer, texts: Texts) -> Tensor:
        counts.append(len(texts))
        return read(model, texts)

    monkeypatch.setattr(Heterformer, "text_states", counted)
    return counts


def start_process(log: Path, function: Callable[..., Any], *arguments: Any) -> BaseProcess:
    """Run ``function`` in a process of its own, on one thread, with its output in the file ``log``.

    Processes are forked from one that has imported everything already and has no threads.
    """
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["heterformer.training.train", "heterformer.embedding.embed"])
    process = processes.Process(target=_in_process, args=(log, function, *arguments), daemon=True)
    process.start()
    return process


def _in_process(log: Path, function: Callable[..., Any], *arguments: Any) -> None:
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(file, 1)
    os.dup2(file, 2)
    torch.set_num_threads(1)
    without_bf16(pytest.MonkeyPatch())
    function(*arguments)


def wait_for_lines(path: Path, count: int, process: BaseProcess) -> None:
    """Return as soon as a file has so many lines; it is an error if the process ends before."""
    while not path.exists() or path.read_bytes().count(b"\n") < count:
        if not process.is_alive():
            raise AssertionError(f"the process ended with {process.exitcode} before {path} had {count} lines")
        time.sleep(0.002)
