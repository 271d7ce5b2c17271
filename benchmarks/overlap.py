"""Whether the batches of coming steps are made while a step is computed.

    python benchmarks/overlap.py NET [--steps 96] [--batch-size 30] [--backbone BACKBONE] [--threads 1]

Takes the same steps twice: with batches made when they are asked for, and with a thread that makes them
ahead. What is timed is how long the steps wait for their batches, but for those of the first group, which
nobody can make ahead. The ratio is the one over the other: 1 means that nothing overlaps. Losses are
compared, too: they must be the same to the last bit.

The backbone is a tiny random one unless given: with a large one on a CPU, sampling is a small part of a
step, on a GPU it is not. Needs a second core.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch
from trainers import save_tiny_backbone

from heterformer import Network, Run, TrainingOptions
from heterformer.batches.prefetch import Prefetcher
from heterformer.batches.slices import SlicedBatch
from heterformer.training.loop import Trainer


class Steps(NamedTuple):
    """Some steps: seconds of all, seconds that they waited for batches, and losses."""

    seconds: float
    waited: float
    losses: list[float]


def new_trainer(network: Network, folder: Path, backbone: str, batch_size: int) -> Trainer:
    values = {"backbone": backbone, "batch_size": batch_size, "device": "cpu", "neighbor_states": "live"}
    options = TrainingOptions.from_flat(values).resolved()
    run = Run(folder)
    run.start(network, options)
    return Trainer(network, run, options)


def made_when_asked_for(trainer: Trainer) -> Callable[[int, int], SlicedBatch]:
    return lambda epoch, step: trainer.slice_batch(trainer.batches.batch(epoch, step))


def take_steps(trainer: Trainer, batch: Callable[[int, int], SlicedBatch], steps: int) -> Steps:
    waited, losses, began = 0.0, [], time.perf_counter()
    for number in range(steps):
        trainer.position.step = number
        start = time.perf_counter()
        made = batch(*divmod(number, trainer.batches.steps_per_epoch))
        waited += (time.perf_counter() - start) * (number >= trainer.batches.steps_at_once)
        losses.append(trainer._step(made))
    return Steps(time.perf_counter() - began, waited, losses)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("network")
    parser.add_argument("--steps", type=int, default=96)
    parser.add_argument("--batch-size", type=int, default=30)
    parser.add_argument("--backbone")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    network, steps = Network.open(options.network), options.steps
    with tempfile.TemporaryDirectory() as folder:
        backbone = options.backbone or save_tiny_backbone(Path(folder) / "backbone")

        def trainer(name: str) -> Trainer:
            return new_trainer(network, Path(folder) / name, backbone, options.batch_size)

        first = trainer("first")
        take_steps(first, made_when_asked_for(first), 2)  # what a first step alone has to do
        plain, overlapped = trainer("plain"), trainer("overlapped")
        alone = take_steps(plain, made_when_asked_for(plain), steps)
        with Prefetcher(overlapped.batches, overlapped.slice_batch) as ahead:
            together = take_steps(overlapped, ahead.batch, steps)
    print(f"{steps} steps of {options.batch_size} pairs on {options.threads} thread(s)")
    for name, taken in (("made when asked for", alone), ("made ahead by a thread", together)):
        print(f"batches {name}: waited {taken.waited:.3f} s for them of {taken.seconds:.2f} s")
    same = "equal" if alone.losses == together.losses else "DIFFER"
    print(f"ratio {alone.waited / together.waited:.1f}; losses {same}")


if __name__ == "__main__":
    main()
