"""Two processes with a thread each against one with two threads, and what they exchange.

    python benchmarks/scale_out.py [--pairs 30] [--steps 10] [--tiny]

Speed: Heterformer on MiniLM and a synthetic network; two processes with 30 pairs a step each against one
with 60, all steps alike. Exchange: bytes that a process gives away in a step whose pairs meet 180 authors,
with 10 thousand and with 10 million authors in the table; the optimiser takes no step here, which would
want 10 GB. With --tiny a small random BERT, few steps and small tables show that the benchmark works.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
from textless_scale import schema
from torch import nn
from trainers import new_trainer, prepare

from heterformer.distributed import ProcessGroup, destroy_process_group
from heterformer.models.textless import TextlessNodes

TOUCHED, DIM = 180, 64
WARM = 2  # steps before the clock


def pairs_per_second(folder: Path, pairs: int, steps: int) -> float:
    """Of all processes that are in this together."""
    processes = ProcessGroup.from_environment("cpu")
    torch.set_num_threads(1 if processes.world_size > 1 else 2)
    trainer = new_trainer(folder, processes, batch_size=pairs)
    for number in range(WARM):
        trainer.take_step(number)
    processes.barrier()
    start = time.perf_counter()
    for number in range(WARM, WARM + steps):
        trainer.take_step(number)
    processes.barrier()
    return steps * pairs * processes.world_size / (time.perf_counter() - start)


def bytes_per_step(authors: int, dense: int) -> int:
    """What ``all_reduce_gradients`` exchanges for a table of authors and dense parameters."""
    processes = ProcessGroup.from_environment("cpu")
    nodes = TextlessNodes(schema(authors), DIM, 2 * DIM, heterogeneous=True)
    rows = (torch.arange(TOUCHED) * (authors // TOUCHED) + processes.rank) % authors
    nodes("author", rows).sum().backward()
    other = nn.Parameter(torch.zeros(dense))
    other.grad = torch.ones(dense)
    table, projection = nodes.parameters_of("author")
    before = processes.sent
    processes.all_reduce_gradients([other, projection], [table])
    assert table.grad is not None
    assert TOUCHED <= table.grad._nnz() <= TOUCHED * processes.world_size
    return processes.sent - before


def started(processes: int, *arguments: str) -> float:
    """The figure that the main process prints."""
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    command = [sys.executable, *(launcher if processes > 1 else []), __file__, *arguments]
    environment = os.environ | {"OMP_NUM_THREADS": str(2 // processes)}
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    return float(
        json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))["figure"]
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--speed", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--bytes", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.speed or options.bytes:
        if options.speed:
            folder, pairs, steps = options.speed
            figure = pairs_per_second(Path(folder), int(pairs), int(steps))
        else:
            figure = float(bytes_per_step(*map(int, options.bytes)))
        if os.environ.get("RANK", "0") == "0":
            print(json.dumps({"figure": figure}), flush=True)
        destroy_process_group()
        return

    pairs, steps = (8, 2) if options.tiny else (options.pairs, options.steps)
    sizes, dense = ((1_000, 100_000), 1_000) if options.tiny else ((10_000, 10_000_000), 10_000_000)
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder), papers=max(200, 40 * pairs), tiny=options.tiny)
        two = started(2, "--speed", folder, str(pairs), str(steps))
        one = started(1, "--speed", folder, str(2 * pairs), str(steps))
    print(f"two processes, a thread each: {two:.1f} pairs per second; one with two threads: {one:.1f}")
    sent = [started(2, "--bytes", str(size), str(dense)) for size in sizes]
    for size, figure in zip(sizes, sent, strict=True):
        print(f"{size:>10,} textless nodes: {figure:,.0f} bytes from each process per step")
    print(f"speed {two / one:.2f} times; bytes {sent[1] / sent[0]:.2f} times")


if __name__ == "__main__":
    main()
