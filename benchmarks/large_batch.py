"""Peak memory and time of a large batch in micro-batches against a plain batch of the micro-batch's size.

    python benchmarks/large_batch.py [--batch-size 1024] [--micro-batch 32] [--threads 2] [--tiny]

Heterformer on MiniLM and a synthetic network, with dropout, false negatives masked, optimiser steps and all.
Each form is a process of its own. Peak memory is the largest resident size during two steps (VmHWM) less the
resident size just before them (VmRSS), so it holds activations, gradients and optimiser state, but not the
weights. Time is per pair, the plain form taking as many pairs in several steps. With --tiny a small random
BERT and few pairs show that the benchmark works; its figures mean nothing.

Whether more negatives help at equal pairs seen is a question to a network, here with 102,400 pairs:

    heterformer train NET runs/b32   --batch-size 32   --max-steps 3200 --evaluate-every 640
    heterformer train NET runs/b1024 --batch-size 1024 --micro-batch 32 --max-steps 100 --evaluate-every 20
    heterformer evaluate runs/b32 && heterformer evaluate runs/b1024
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
from trainers import new_trainer, prepare

TARGET = 1.3  # times the memory of the plain small batch


def measured(folder: Path, batch_size: int, micro_batch: int | None, pairs: int) -> dict[str, float]:
    """MB beyond what is there before, and seconds per pair; meant for a process of its own."""
    trainer = new_trainer(folder, batch_size=batch_size, micro_batch=micro_batch)
    steps = max(2, pairs // batch_size)
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak of loading
    before = _status("VmRSS")
    trainer.take_step(0)  # allocates the optimiser's state
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    start = clock()
    for number in range(1, steps):
        trainer.take_step(number)
    took = (clock() - start) / ((steps - 1) * batch_size)
    peak = _status("VmHWM")
    return {"memory": (peak - before) / 1024, "process": peak / 1024, "seconds": took}


def _status(field: str) -> int:
    """A field of this process's status, in kB."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(field))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--batch-size", type=int, default=1024)
    parser.add_argument("--micro-batch", type=int, default=32)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--measure", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.measure:
        folder, batch_size, micro_batch, pairs = options.measure
        print(json.dumps(measured(Path(folder), int(batch_size), int(micro_batch) or None, int(pairs))))
        return

    large, small = (64, 8) if options.tiny else (options.batch_size, options.micro_batch)
    with tempfile.TemporaryDirectory() as name:
        prepare(Path(name), papers=10 * large, tiny=options.tiny)
        results = {}
        for form, sizes in {"micro": (large, small), "plain": (small, 0)}.items():
            arguments = [name, *map(str, sizes), str(2 * large)]
            command = [sys.executable, __file__, "--threads", str(options.threads), "--measure", *arguments]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            results[form] = json.loads(done.stdout.splitlines()[-1])
    for form, title in {
        "micro": f"{large} pairs in slices of {small}",
        "plain": f"{small} pairs plain",
    }.items():
        values = results[form]
        print(
            f"{title:32} {values['memory']:7.0f} MB (process {values['process']:.0f} MB)  "
            f"{1000 * values['seconds']:.1f} ms per pair"
        )
    ratios = {name: results["micro"][name] / results["plain"][name] for name in results["micro"]}
    print(
        f"memory {ratios['memory']:.2f} times (target at most {TARGET}), whole process "
        f"{ratios['process']:.2f} times; time per pair {ratios['seconds']:.2f} times"
    )


if __name__ == "__main__":
    main()
