"""What training and embedding a network will need, before anybody has paid for it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from heterformer.device import chosen_device, chosen_precision, chosen_training_precision
from heterformer.embedding.options import EmbedOptions
from heterformer.errors import OptionError
from heterformer.network.store import Network
from heterformer.plan.memory import (
    FLOAT,
    Memory,
    ModelSize,
    embedding_memory,
    training_memory,
    warm_up_memory,
)
from heterformer.plan.network import PlannedNetwork
from heterformer.plan.options import PlanOptions
from heterformer.plan.throughput import measured_throughput
from heterformer.training.cached_states import auto_interval
from heterformer.training.options import TrainingOptions

WORD = 8  # bytes of a row's number, and of a count


@dataclass(frozen=True)
class Disk:
    """Bytes."""

    text_states: int  # of all texts, while embedding
    vectors: int  # of all nodes, and their signatures; ids come on top
    checkpoints: int  # the last one with its moments, the best one, the model, and a mean of weights
    cached: int  # states of neighbours, while training on cached ones


@dataclass(frozen=True)
class Exchange:
    """Bytes that a process gives away in a step, by what becomes of them."""

    summed: int  # dense gradients, and gradients of the gathered keys
    gathered: int  # keys, and touched rows of tables

    @property
    def total(self) -> int:
        return self.summed + self.gathered

    def sent(self, processes: int) -> float:
        """Bytes on a process's wire: a sum goes round the ring twice, in parts; a row to everybody else."""
        others = processes - 1
        return 2 * others / processes * self.summed + others * self.gathered


@dataclass(frozen=True)
class Speed:
    """What one process does in a second, and how that is known."""

    pairs: float | None
    nodes: float | None
    source: str


@dataclass(frozen=True)
class ProcessGroupPlan:
    """So many processes that work together."""

    processes: int
    pairs_per_step: int
    steps_per_epoch: int
    memory: Memory  # of each
    exchange: Exchange
    step_seconds: float | None
    efficiency: float | None  # of a step without the exchange
    epoch_hours: float | None
    embedding_hours: float | None


@dataclass(frozen=True)
class Plan:
    """Everything ``heterformer plan`` shows."""

    network: PlannedNetwork
    options: TrainingOptions
    embed: EmbedOptions
    size: ModelSize
    embedding: Memory  # of each process
    warm_up: int  # bytes on the first process's host; 0 without a warm-up
    disk: Disk
    speed: Speed
    bandwidth: float  # GB per second
    together: tuple[ProcessGroupPlan, ...]


def make_plan(network: Network, training: TrainingOptions, embed: EmbedOptions, options: PlanOptions) -> Plan:
    """Count, and measure what was not given."""
    device = chosen_device(training.device)
    training = training.resolved()
    training = replace(training, precision=chosen_training_precision(training.precision, device))
    embed = replace(embed, precision=chosen_precision(embed.precision, device))
    planned = PlannedNetwork.from_network(network, training.split, training.model.backbone, options)
    size = ModelSize.from_options(planned.schema, training)
    speed = _speed(network, training, embed, options)
    warms_up = training.warm_up.warm_up and size.learns_textless
    return Plan(
        planned,
        training,
        embed,
        size,
        embedding_memory(size, planned, embed),
        warm_up_memory(size, planned) if warms_up else 0,
        _disk(planned, size, training, embed),
        speed,
        options.bandwidth,
        tuple(_together(n, planned, size, training, speed, options.bandwidth) for n in options.processes),
    )


def _speed(network: Network, training: TrainingOptions, embed: EmbedOptions, options: PlanOptions) -> Speed:
    pairs, nodes = options.pairs_per_second, options.nodes_per_second
    if pairs and nodes:
        return Speed(pairs, nodes, "given")
    if not options.measure:
        return Speed(pairs, nodes, "given" if pairs or nodes else "not known")
    measured = measured_throughput(network, training, embed)
    return Speed(pairs or measured.pairs, nodes or measured.nodes, f"measured here on {measured.device}")


def _disk(network: PlannedNetwork, size: ModelSize, training: TrainingOptions, embed: EmbedOptions) -> Disk:
    row, schema = size.states * size.width, network.schema
    learnt = (*schema.text_rich, *(schema.textless if size.learns_textless else ()))
    for node_type in embed.types:
        if node_type not in learnt:
            known = ", ".join(map(repr, learnt))
            raise OptionError(embed, "types", f"has {node_type!r}, the model has vectors of {known}.")
    counts = {t: schema.counts[t] for t in embed.types or learnt}
    vector, h0 = (n * np.dtype(embed.dtype).itemsize for n in (size.width, size.textless_dim * embed.h0))
    textless = sum(counts[t] for t in counts if t in schema.textless)
    reads = any(t in schema.text_rich for t in counts)  # else no text is read
    with_neighbors = size.width * size.has_second_hop
    return Disk(
        text_states=network.texts * (row + with_neighbors) * np.dtype(embed.states_dtype).itemsize * reads,
        vectors=sum(counts.values()) * (vector + WORD) + textless * h0,
        checkpoints=_checkpoints(size, training),
        cached=_met(network, network.pairs) * row * FLOAT if training.neighbor_states == "cached" else 0,
    )


def _checkpoints(size: ModelSize, training: TrainingOptions) -> int:
    models = 3 + (training.average_last is not None)  # last, best, the run's own, and a mean of weights
    moments = 2 * (size.parameters - size.frozen)
    return FLOAT * (models * size.parameters + moments)


def _together(
    processes: int,
    network: PlannedNetwork,
    size: ModelSize,
    training: TrainingOptions,
    speed: Speed,
    bandwidth: float,
) -> ProcessGroupPlan:
    batch = training.batch_size * processes
    rows = touched_rows(size, network, training)
    exchange = Exchange(0, 0)
    if processes > 1:
        keys = FLOAT * size.width * training.batch_size * (1 + training.hard_negatives)
        exchange = Exchange(FLOAT * size.dense + keys * processes, keys + rows)
    steps = steps_per_epoch(network.pairs, batch)
    seconds = efficiency = epoch = embedding = None
    if speed.pairs:
        alone = training.batch_size / speed.pairs
        seconds = alone + exchange.sent(processes) / (1e9 * bandwidth)
        efficiency, epoch = alone / seconds, steps * seconds / 3600
    if speed.nodes:
        embedding = network.texts / (speed.nodes * processes) / 3600
        if epoch is not None and training.neighbor_states == "cached":  # a refresh is the first of two passes
            epoch += _refreshed(network, training, steps, batch) / (speed.nodes * processes) / 3600
    memory = training_memory(size, network, training, processes, rows)
    return ProcessGroupPlan(processes, batch, steps, memory, exchange, seconds, efficiency, epoch, embedding)


def _met(network: PlannedNetwork, pairs: int) -> int:
    """Texts that are neighbours of the ends of some pairs, at most."""
    return min(network.texts, round(2 * pairs * network.text_neighbors))


def _refreshed(network: PlannedNetwork, training: TrainingOptions, steps: int, batch: int) -> float:
    """Texts that refreshes of stored states read in an epoch, at most."""
    every = training.refresh_every or steps
    if every == "auto":
        every = auto_interval(network.texts, batch, training.hard_negatives, steps)
    return _met(network, batch * every) * steps / every


def steps_per_epoch(pairs: int, batch: int) -> int:
    """A last step of a single pair has no negatives and is left out."""
    full, rest = divmod(pairs, batch)
    return full + (rest > 1)


def touched_rows(size: ModelSize, network: PlannedNetwork, training: TrainingOptions) -> int:
    """Bytes of the table rows that one process's part of a step touches, and of their numbers; at most."""
    centers, total = training.centers_per_pair * training.batch_size, 0
    if size.learns_textless:
        per_row = FLOAT * size.textless_dim + WORD
        for node_type, neighbors in network.neighbors.items():
            if node_type in network.schema.textless:
                total += min(round(centers * neighbors), network.schema.counts[node_type]) * per_row
    if size.token_table:
        live = training.neighbor_states == "live" and size.states > 0
        texts = centers * (1 + live * network.text_neighbors)
        total += network.sample.distinct(texts, size.vocabulary) * (FLOAT * size.token_width + WORD)
    return total
