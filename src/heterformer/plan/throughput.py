"""How fast this machine is: a few real training steps and a few embedded nodes, with random weights."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from heterformer.arrays import Ints
from heterformer.batches.stable import StableSampler
from heterformer.batches.visible import VisibleNetwork
from heterformer.device import chosen_precision, computing_in
from heterformer.embedding.options import EmbedOptions
from heterformer.errors import InputError
from heterformer.models.contract import NodeEncoder
from heterformer.models.inference import center_vectors, drawn_once, each_text, evaluating
from heterformer.models.plm.loading import load_plm_config, load_tokenizer, untrained_plm
from heterformer.models.plm.minilm import backbone_path
from heterformer.network.store import Network
from heterformer.network.tokens import PackedTokens
from heterformer.progress import Bar, progress_bar
from heterformer.training.loop import Trainer
from heterformer.training.options import TrainingOptions
from heterformer.training.run import Run

STEPS, SECONDS = 5, 20.0  # steps to measure, and the time after which measuring stops
NODES = 512  # embedded


@dataclass(frozen=True)
class Throughput:
    """What one process does in a second."""

    pairs: float
    nodes: float
    device: str  # where that is so


def measured_throughput(
    network: Network, options: TrainingOptions, embed: EmbedOptions, embedded_nodes: int = NODES
) -> Throughput:
    """Of this machine as it is now; the first step, which allocates everything, does not count."""
    with _measuring(network, options, STEPS + 2) as (trainer, bar):
        pairs = _pairs_per_second(trainer, bar)
        nodes = _nodes_per_second(trainer.model, network, trainer.validation.tokens, embed, embedded_nodes)
        bar.advance()
    return Throughput(pairs, nodes, _device(trainer.model))


def measured_training_speed(network: Network, options: TrainingOptions) -> float:
    """Pairs that one process trains on in a second, on this machine as it is now."""
    with _measuring(network, options, STEPS + 1) as (trainer, bar):
        return _pairs_per_second(trainer, bar)


@contextmanager
def _measuring(network: Network, options: TrainingOptions, steps: int) -> Iterator[tuple[Trainer, Bar]]:
    """A trainer that is ready for its first steps, and a bar of so many; its folder goes afterwards."""
    with (
        tempfile.TemporaryDirectory(prefix="heterformer-") as name,
        progress_bar("measuring", steps, "steps") as bar,
    ):
        trainer = _trainer(network, options, Path(name))
        if trainer.cached is not None:
            for _ in trainer.cached.refresh(0, STEPS + 1):
                pass
        yield trainer, bar


def _trainer(network: Network, options: TrainingOptions, folder: Path) -> Trainer:
    """A new run that nobody will see. Of a batch in micro-batches two are enough to know the rest."""
    options = options.resolved()
    micro = options.micro_batch
    options = replace(
        options,
        model=replace(options.model, backbone=_random_backbone(options.model.backbone, folder / "backbone")),
        batch_size=min(options.batch_size, 2 * micro if micro else options.batch_size),
        refresh_every=STEPS + 1 if options.neighbor_states == "cached" else None,
        tensorboard=False,
        wandb=None,
        mlflow=None,
    )
    run = Run(folder / "run")
    run.start(network, options)
    return Trainer(network, run, options)


def _random_backbone(name: str, folder: Path) -> str:
    """A backbone of the same sizes: its weights need not be there, and do not matter for speed."""
    try:
        untrained_plm(load_plm_config(backbone_path(name))).save_pretrained(folder)
        load_tokenizer(backbone_path(name)).save_pretrained(folder)
    except (OSError, ValueError, InputError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"backbone {name!r} cannot be loaded: {reason}") from error
    return str(folder)


def _pairs_per_second(trainer: Trainer, bar: Bar) -> float:
    trainer.take_step(0)
    bar.advance()
    start, taken, pairs = time.perf_counter(), 0, 0
    while taken < STEPS and (taken == 0 or time.perf_counter() - start < SECONDS):
        taken += 1
        pairs += trainer.take_step(taken)
        bar.advance()
    return pairs / (time.perf_counter() - start)


def _nodes_per_second(
    model: NodeEncoder, network: Network, tokens: PackedTokens, options: EmbedOptions, most: int
) -> float:
    """Both passes, each over the same nodes; the disk in between is not part of it."""
    visible, rng = VisibleNetwork.whole(network), np.random.default_rng(0)
    batcher, sampler = model.new_batcher(visible, tokens), StableSampler(network, options.seed)
    second_hop = drawn_once(batcher, sampler)
    device, seconds, done = model.device, 0.0, 0
    with evaluating(model), computing_in(chosen_precision(options.precision, device), device):
        shape = each_text(model.text_states, tokens, np.empty(0, dtype=np.int64), device).shape[1:]

        def stored(numbers: Ints) -> Any:
            return torch.zeros(len(numbers), *shape)

        for node_type in network.schema.text_rich:
            count = network.schema.counts[node_type]
            rows = np.sort(rng.choice(count, min(most, count), replace=False))
            start = time.perf_counter()
            text_rows = rows + tokens.text_offset[node_type]
            each_text(model.text_states, tokens, text_rows, device)
            if second_hop is not None:
                batch = batcher.texts_with_neighbors(text_rows, second_hop).to(device)
                model.neighbor_vectors(batch, torch.zeros(batch.neighbor_texts, shape[-1], device=device))
            center_vectors(model, batcher, node_type, rows, sampler, stored)
            seconds, done = seconds + time.perf_counter() - start, done + len(rows)
    return done / seconds


def _device(model: NodeEncoder) -> str:
    if model.device.type == "cuda":
        return torch.cuda.get_device_name(model.device)
    threads = torch.get_num_threads()
    return f"{threads} CPU thread{'s' * (threads > 1)}"
