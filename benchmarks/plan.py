"""The memory that ``heterformer plan`` estimates against that of real steps and a real embedding.

    python benchmarks/plan.py [--threads 1] [--tiny]

Heterformer on a synthetic network, each case in a process of its own. Measured is the largest resident size
(VmHWM) during three training steps, or while the network is embedded, less the resident size before (VmRSS),
when the weights are there already; estimated is the plan's total without weights and tables. So it is
moments, gradients, activations and what embedding holds at once. With --tiny a small random BERT shows that
the benchmark works; its figures mean nothing, since Python's own memory is more than all it needs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
from trainers import new_trainer, prepare

from heterformer import embed
from heterformer.embedding.options import EmbedOptions
from heterformer.plan.core import make_plan
from heterformer.plan.options import PlanOptions

CASES: dict[str, dict[str, Any]] = {
    "batch 30": {"batch_size": 30},
    "batch 60": {"batch_size": 60},
    "batch 120 in parts of 30": {"batch_size": 120, "micro_batch": 30},
    "batch 30, cached": {"batch_size": 30, "neighbor_states": "cached"},
    "batch 30, bf16": {"batch_size": 30, "precision": "bf16"},
    "embedding": {"batch_size": 30},
}
STEPS = 3


def estimated_and_measured(folder: Path, case: str) -> dict[str, float]:
    """MB; meant for a process of its own."""
    trainer = new_trainer(folder, **CASES[case])
    options = trainer.options
    plan = make_plan(trainer.network, options, EmbedOptions(), PlanOptions(processes=(1,), measure=False))
    memory = plan.embedding if case == "embedding" else plan.together[0].memory
    if trainer.cached is not None:
        list(trainer.cached.refresh(0, STEPS))
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak of loading
    before = _status("VmRSS")
    if case == "embedding":
        embed(trainer.model, trainer.network, out=folder / "vectors", tokenizer=trainer.tokenizer)
    else:
        for number in range(STEPS):
            trainer.take_step(number)
    measured = (_status("VmHWM") - before) / 1000
    return {"estimated": (memory.total - memory.weights - memory.textless) / 1e6, "measured": measured}


def _status(field: str) -> float:
    """A field of this process's status, in thousands of bytes."""
    with open("/proc/self/status") as status:
        return 1.024 * next(int(line.split()[1]) for line in status if line.startswith(field))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--case", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.case:
        print(json.dumps(estimated_and_measured(Path(options.case[0]), options.case[1])))
        return

    shares = []
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder), papers=6000, tiny=options.tiny)
        for case in CASES:
            command = [sys.executable, __file__, "--threads", str(options.threads), "--case", folder, case]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            peaks = json.loads(done.stdout.splitlines()[-1])
            shares.append(peaks["estimated"] / peaks["measured"])
            print(
                f"{case:26} estimated {peaks['estimated']:6.0f} MB  measured {peaks['measured']:6.0f} MB",
                flush=True,
            )
    print(f"estimated is {min(shares):.2f} to {max(shares):.2f} times what was measured")


if __name__ == "__main__":
    main()
