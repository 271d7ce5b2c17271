"""Where the time of a training step goes, on cached and on live neighbour states.

    python benchmarks/profile_step.py NET [--steps 3] [--precision auto] [--backbone minilm] [--threads 1]

Real steps of a new run on a network, under PyTorch's profiler: reading stored states, forward, backward,
update. An operation counts where it first fits:

- stored states: reading them from the disk, of a cached step
- optimiser: of dense parameters; optimiser of rows: of the rows of tables that a step has used
- attention: scores, weights and sums of attention, forwards and backwards, not its projections
- matrix products: those of projections and of the feed-forward part
- conversions: between float32 and bf16, and copies
- normalisation, activation, dropout
- masks and gathering: whatever else is an operation of PyTorch
- Python: the time in none of them, the profiler's own included

The refresh of cached states is not part of a step. Nor is sampling, which a thread does ahead for a group of
steps; it is timed apart. Beside the shares: how many operations a step calls, and what its products reach of
the rate of a large matrix product, by processor time. The last line is the share that is not in matrix
products.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from rich.console import Console
from rich.table import Table
from torch.profiler import ProfilerActivity, profile, record_function

from heterformer import Network, Run, TrainingOptions
from heterformer.device import computing_in
from heterformer.training.cached_states import CachedStates
from heterformer.training.loop import Trainer

STEP, STATES = "step of training", "stored states"
DENSE, ROWS = "optimiser", "optimiser of rows"
WARM_UP = 1  # steps that allocate everything
KINDS = (
    "matrix products",
    "attention",
    "normalisation, activation, dropout",
    "conversions",
    "masks and gathering",
    DENSE,
    ROWS,
    STATES,
    "Python",
)
PRODUCTS = ("aten::mm", "aten::addmm", "aten::bmm", "aten::linear", "aten::matmul", "mkldnn")
CONVERSIONS = ("aten::copy_", "aten::_to_copy", "aten::to", "aten::clone", "aten::contiguous")
POINTWISE = ("norm", "gelu", "Dropout", "bernoulli", "aten::rand", "aten::mul_")


def new_trainer(network: Network, folder: Path, backbone: str, states: str, precision: str) -> Trainer:
    values = {"backbone": backbone, "device": "cpu", "neighbor_states": states, "precision": precision}
    options = TrainingOptions.from_flat(values).resolved()
    run = Run(folder)
    run.start(network, options)
    return Trainer(network, run, options)


def take_steps(trainer: Trainer, numbers: Iterable[int]) -> None:
    for number in numbers:
        batch = trainer.slice_batch(trainer.batches.batch(0, number))
        with record_function(STEP):
            trainer.position.step = number
            trainer._step(batch)


def noted_reading() -> AbstractContextManager[object]:
    """Reading stored states under a name of its own."""
    for_batch = CachedStates.for_batch

    def noted(self: CachedStates, *arguments: Any) -> Any:
        with record_function(STATES):
            return for_batch(self, *arguments)

    return patch.object(CachedStates, "for_batch", noted)


def times_by_kind(events: Iterable[Any]) -> Counter[str]:
    """Microseconds of the operations' own time."""
    scopes: dict[int, str] = {}  # of an operation and all that it calls

    def scope_of(event: Any) -> str:
        if event is None:
            return ""
        if id(event) not in scopes:
            scopes[id(event)] = scope_of(event.cpu_parent) or _scope(event.name)
        return scopes[id(event)]

    times: Counter[str] = Counter()
    for event in events:
        within = event.name if event.cpu_parent is None else f"{event.cpu_parent.name} {event.name}"
        times[scope_of(event) or _kind(event.name, within)] += event.self_cpu_time_total
    return times


def _scope(name: str) -> str:
    """What an operation and all that it calls count as; nothing if each counts as what it is."""
    if name == STATES:
        return name
    if name.startswith("Optimizer."):
        return ROWS if "SparseAdam" in name else DENSE
    return "attention" if "Attention" in name else ""


def _kind(name: str, within: str) -> str:
    """What an operation counts as that is called ``within`` another one, or by itself."""
    if name == STEP or not name.startswith(("aten::", "mkldnn")):
        return "Python"
    if name.startswith(PRODUCTS):
        return "matrix products"
    if name in CONVERSIONS:
        return "conversions"
    if any(word in within for word in POINTWISE):
        return "normalisation, activation, dropout"
    return "masks and gathering"


def peak_rate(trainer: Trainer, size: int = 2048) -> float:
    """Operations per second of processor time of a large product, in the precision of the steps."""
    a, b = torch.randn(2, size, size)
    with torch.no_grad(), computing_in(trainer.precision, a.device):
        a, b = (a @ torch.eye(size), b @ torch.eye(size))  # in that precision
        seconds = []
        for _ in range(5):
            start = time.process_time()
            a @ b
            seconds.append(time.process_time() - start)
    return float(2 * size**3 / min(seconds))


def sampling_seconds(trainer: Trainer) -> float:
    """Processor time of making a step's batch, of those that are made together."""
    group, start = trainer.batches.steps_at_once, time.process_time()
    trainer.batches.batch(0, group)  # the first of the second group: the first steps need theirs untouched
    return (time.process_time() - start) / group


def profiled(trainer: Trainer, steps: int) -> tuple[Counter[str], int, float, float]:
    """Of a step: microseconds by kind, operations, floating-point operations, seconds of processor time."""
    if trainer.cached is not None:
        for _ in trainer.cached.refresh(0, WARM_UP + 2 * steps):
            pass
    take_steps(trainer, range(WARM_UP))
    start = time.process_time()
    take_steps(trainer, range(WARM_UP, WARM_UP + steps))
    seconds = (time.process_time() - start) / steps
    numbers = range(WARM_UP + steps, WARM_UP + 2 * steps)
    with noted_reading(), profile(activities=[ProfilerActivity.CPU], with_flops=True) as profiler:
        take_steps(trainer, numbers)
    events = profiler.events()
    calls = sum(event.name.startswith("aten::") for event in events) // steps
    return times_by_kind(events), calls, sum(event.flops or 0 for event in events) / steps, seconds


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("network")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--precision", choices=["float32", "bf16", "auto"], default="auto")
    parser.add_argument("--backbone", default="minilm")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    table, shares, lines = Table("share of a step", title=""), {}, []
    for states in ("cached", "live"):
        table.add_column(states, justify="right")
        with tempfile.TemporaryDirectory() as folder:
            network = Network.open(options.network)
            trainer = new_trainer(network, Path(folder) / "run", options.backbone, states, options.precision)
            sampling = sampling_seconds(trainer)
            print(f"{states}: sampling takes {sampling:.4f} s of processor time a step", flush=True)
            times, calls, flops, seconds = profiled(trainer, options.steps)
            reached = flops / seconds / peak_rate(trainer)
            precision = trainer.precision
        shares[states] = {kind: times[kind] / times.total() for kind in KINDS}
        lines.append(
            f"{states}: {seconds:.3f} s of processor time, {calls:,} operations, "
            f"{reached:.2f} of the rate of a large product"
        )
    table.title = f"{Path(options.network).name}, {options.backbone}, {precision}"
    for kind in KINDS:
        table.add_row(kind, *(f"{100 * shares[states][kind]:.1f} %" for states in shares))
    Console(width=100).print(table)
    print(*lines, sep="\n")
    others = ", ".join(f"{states} {1 - share[KINDS[0]]:.2f}" for states, share in shares.items())
    print(f"not in matrix products: {others} of a step")


if __name__ == "__main__":
    main()
