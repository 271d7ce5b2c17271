"""One training step with bf16 products (``heterformer train --precision bf16``) against float32.

    python benchmarks/training_precision.py [--repeats 5] [--threads 1]

Both take the same batch of 30 pairs and the same MiniLM weights; losses of three steps are compared first.
Steps alternate between the two; times are medians, of processor time with one thread, of the clock with
several. What bf16 gains depends on the processor: one without bf16 products gains nothing or loses.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch
from shapes import SHAPES, Shape, new_model, new_optimizers, training_step
from torch import Tensor

TITLES = {"dblp": "DBLP-shaped", "goodreads": "Goodreads-shaped"}


def bf16() -> AbstractContextManager[object]:
    return torch.autocast("cpu", torch.bfloat16)


PRECISIONS: dict[str, Callable[[], AbstractContextManager[object]]] = {"float32": nullcontext, "bf16": bf16}


def step_of(shape: Shape, precision: str, training: bool) -> Callable[[], Tensor]:
    model, batch = new_model(shape).train(training), shape.batch()

    def vectors() -> Tensor:
        with PRECISIONS[precision]():
            return model.encode_batch(batch).float()

    return training_step(vectors, new_optimizers(model))


def check_close_losses(shape: Shape) -> float:
    """Without dropout, the difference between the losses of three steps of both."""
    losses = {}
    for name in PRECISIONS:
        step = step_of(shape, name, training=False)
        losses[name] = torch.stack([step() for _ in range(3)])
    difference = float((losses["float32"] - losses["bf16"]).abs().max())
    assert difference < 0.05, f"losses differ by {difference}: {losses}"
    return difference


def seconds(shape: Shape, repeats: int) -> dict[str, float]:
    steps = {name: step_of(shape, name, training=True) for name in PRECISIONS}
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    times: dict[str, list[float]] = {name: [] for name in steps}
    for name in list(steps) * (repeats + 1):  # the first time each warms up
        start = clock()
        steps[name]()
        times[name].append(clock() - start)
    return {name: statistics.median(values[1:]) for name, values in times.items()}


def main() -> None:
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    figures = []
    for name in options.shapes:
        difference = check_close_losses(SHAPES[name])
        took = seconds(SHAPES[name], options.repeats)
        times = f"float32 {took['float32']:.3f} s, bf16 {took['bf16']:.3f} s"
        print(f"{TITLES[name]}: {times}; losses of three steps differ by {difference:.4f} at most")
        figures.append(f"{TITLES[name]} {took['float32'] / took['bf16']:.2f} times")
    print(f"bf16 vs float32: {', '.join(figures)} faster per step")


if __name__ == "__main__":
    main()
