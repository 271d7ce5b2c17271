"""The paper's scalability table: milliseconds and memory per mini-batch of three models, in one run.

    python benchmarks/scalability.py NET [--models bert_mean_sage graph_formers heterformer] [--steps 5]

Each model trains on the same network with the same batches, by the real training loop; neighbours' states are
computed in each step. Steps alternate between the models, so that other work on the machine disturbs all
alike; times are medians, of processor time with one thread and of the clock with several. Memory is measured
in a process of its own for each model: the largest resident size during two steps (VmHWM) less that just
before them. The last columns are ratios to the first model.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

from heterformer import Network, Run, TrainingOptions
from heterformer.models.options import MODEL_OPTIONS
from heterformer.training.loop import Trainer

MODELS = ("bert_mean_sage", "graph_formers", "heterformer")  # those of the paper's table


def new_trainer(network: Network, folder: Path, model: str, batch_size: int) -> Trainer:
    """A training that has not taken a step; without warm-up, which is no part of a mini-batch."""
    values = {"model": model, "warm_up": False, "batch_size": batch_size, "device": "cpu"}
    options = TrainingOptions.from_flat({**values, "neighbor_states": "live"}).resolved()
    run = Run(folder / model)
    run.start(network, options)
    return Trainer(network, run, options)


def milliseconds(network: Network, models: list[str], steps: int, batch_size: int) -> dict[str, float]:
    """The median of each model's steps, after one that does not count."""
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    taken: dict[str, list[float]] = {model: [] for model in models}
    with tempfile.TemporaryDirectory(prefix="heterformer-") as folder:
        trainers = {model: new_trainer(network, Path(folder), model, batch_size) for model in models}
        for number in range(steps + 1):
            for model, trainer in trainers.items():
                started = clock()
                trainer.take_step(number)
                if number:
                    taken[model].append(1000 * (clock() - started))
    return {model: statistics.median(times) for model, times in taken.items()}


def megabytes(network: Network, model: str, batch_size: int) -> float:
    """What two steps take besides the weights; only in a process that does nothing else."""
    with tempfile.TemporaryDirectory(prefix="heterformer-") as folder:
        trainer = new_trainer(network, Path(folder), model, batch_size)
        before = _status("VmRSS")
        for number in range(2):
            trainer.take_step(number)
        return (_status("VmHWM") - before) / 1024


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("network")
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODEL_OPTIONS))
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=30)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--memory", choices=list(MODEL_OPTIONS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    network = Network.open(options.network)
    if options.memory:
        print(megabytes(network, options.memory, options.batch_size))
        return
    times = milliseconds(network, options.models, options.steps, options.batch_size)
    words = [sys.executable, __file__, options.network, "--batch-size", str(options.batch_size), "--memory"]
    memory = {
        model: float(subprocess.check_output([*words, model], text=True).split()[-1])
        for model in options.models
    }
    first = options.models[0]
    print(f"{'':16} {'ms/batch':>10} {'MB/batch':>10} {'ratio ms':>9} {'ratio MB':>9}")
    for model in options.models:
        ratios = times[model] / times[first], memory[model] / memory[first]
        name = MODEL_OPTIONS[model].display_name
        print(f"{name:16} {times[model]:10.0f} {memory[model]:10.0f} {ratios[0]:9.2f} {ratios[1]:9.2f}")


if __name__ == "__main__":
    main()
