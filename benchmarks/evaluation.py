"""CPU seconds of ``heterformer evaluate`` against computing everything in float32, each task by itself.

    python benchmarks/evaluation.py RUN [--threads 1] [--repeats 1]

Both do all tasks that the network's labels allow, from a copy of the run without stored vectors. "one pass"
is ``heterformer evaluate RUN``: a text is read once for link prediction and for the vectors that the other
tasks need, a query without its neighbours once for all relations, in bf16 where the processor has it. "task
by task" is ``heterformer evaluate RUN --tasks link_prediction --precision float32``, then the same for the
other tasks, for which each text is read again. The two are measured in turn, as commands, so that what
starting them takes is counted, twice for the second. The last line is the share of the time that is left.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from heterformer import InputError, Run
from heterformer.network.labels import labelled_types

Flags = list[str]


def forms(run: Path) -> dict[str, list[Flags]]:
    """The flags of the commands of each form."""
    other_tasks = ["map"]
    with suppress(InputError):  # of a network without labels
        labelled_types(Run(run).network())
        other_tasks += ["classification", "clustering"]
    exactly = ["--precision", "float32", "--tasks"]
    separately = [[*exactly, "link_prediction"], [*exactly, *other_tasks]]
    return {"one pass": [[]], "task by task, float32": separately}


def cpu_seconds(run: Path, commands: list[Flags], threads: int) -> float:
    """Of evaluating a copy of the run that nobody has searched."""
    start = _children_seconds()
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copytree(run, Path(folder) / "run", ignore=shutil.ignore_patterns("search", "report.*"))
        for flags in commands:
            command = [sys.executable, "-m", "heterformer", "evaluate", str(copy), *flags]
            environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
    return _children_seconds() - start


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=1)
    options = parser.parse_args()
    flags = forms(options.run)
    times: dict[str, list[float]] = {name: [] for name in flags}
    for _ in range(options.repeats):
        for name, commands in flags.items():
            times[name].append(cpu_seconds(options.run, commands, options.threads))
    medians = {name: statistics.median(values) for name, values in times.items()}
    for name, value in medians.items():
        print(f"{name}: {value:.0f} CPU seconds")
    today, before = medians.values()
    print(f"evaluate: {today / before:.2f} of the time")


if __name__ == "__main__":
    main()
