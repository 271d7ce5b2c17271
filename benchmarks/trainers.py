"""A trainer on a synthetic network, to take steps of: with MiniLM, or a tiny random BERT to try it out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import AutoTokenizer, BertConfig, BertModel

from heterformer import Network, Run, TrainingOptions
from heterformer.datasets.synthetic import SyntheticOptions, write_synthetic
from heterformer.distributed import ProcessGroup
from heterformer.models.plm.minilm import backbone_path
from heterformer.training.loop import Trainer


def prepare(folder: Path, papers: int, tiny: bool) -> None:
    """Build the network and, if ``tiny``, the backbone; once, for all processes that then measure."""
    spec = write_synthetic(folder / "tables", SyntheticOptions(papers=papers))
    Network.build(spec, folder / "network")
    if tiny:
        save_tiny_backbone(folder / "backbone")


def save_tiny_backbone(folder: Path) -> str:
    """A random BERT of two narrow layers with MiniLM's tokenizer."""
    tokenizer = AutoTokenizer.from_pretrained(backbone_path("minilm"))
    sizes = {"num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 2}
    config = BertConfig(vocab_size=len(tokenizer), intermediate_size=64, **sizes)
    BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def new_trainer(folder: Path, processes: ProcessGroup | None = None, **options: Any) -> Trainer:
    """A new run in a folder that ``prepare`` filled; nothing is warmed up."""
    tiny = folder / "backbone"
    backbone = str(tiny) if tiny.is_dir() else "minilm"
    resolved = TrainingOptions.from_flat(
        {"backbone": backbone, "device": "cpu", "neighbor_states": "live", **options}
    ).resolved()
    processes = processes or ProcessGroup()
    network, run = Network.open(folder / "network"), Run(folder / f"run-{processes.world_size}")
    with processes.main_process_first():
        if processes.is_main:
            run.start(network, resolved)
    torch.manual_seed(0)
    return Trainer(network, run, resolved, processes)
