"""Everything from raw tables to a map, at a given size and at a tenth of it: time, memory, disk, growth.

    python benchmarks/end_to_end.py --papers 1000000 --folder FOLDER [--layers 3] [--steps 300]

Synthetic tables of DBLP's shape are written and built; the network is described and split; a Heterformer on
the first layers of MiniLM is warmed up and trained on cached states; all nodes are embedded, indexed and
searched a hundred times; test pairs are ranked against all papers; a sample is classified and clustered; and
all nodes are mapped. Each stage is a command of its own, so that its peak memory is its own. Stages that are
finished are not repeated: the same command goes on after a stop.

The table has, for each stage, seconds of the clock and of the processors, peak memory, bytes written, and by
how much the processors' time has grown from a tenth of the papers. The last line is the worst growth.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from build_scale import dblp_shaped

from heterformer.datasets.synthetic import write_synthetic

QUERIES = 100
SAMPLE = 10_000  # nodes that are classified and clustered
PHRASES = ("parsing of", "models for", "a study of", "learning", "evaluation of")


@dataclass(frozen=True)
class Cost:
    """What a stage took."""

    seconds: float
    cpu: float
    memory: int  # peak, in bytes
    disk: int  # written, in bytes


@dataclass(frozen=True)
class Size:
    """One size of the whole, in a folder of its own."""

    papers: int
    folder: Path
    layers: int
    steps: int

    def stages(self) -> dict[str, list[str]]:
        """The commands, in order."""
        net, run, vectors, split = "network.net", "run", "vectors.parquet", "split.parquet"
        train = ["train", net, run, "--backbone", "backbone", "--split.file", split]
        train += ["--neighbor-states", "cached", "--precision", "auto", "--evaluate-every", str(self.steps)]
        train += ["--validation-pairs", "2000"]
        evaluate = ["evaluate", run, "--tasks"]
        sample = ["--classification.max-nodes", str(SAMPLE), "--clustering.sample", str(SAMPLE)]
        commands = {
            "build": ["build", "tables/network.yaml", net, "--data", "tables"],
            "describe": ["describe", net],
            "split": ["split", net, split],
            "warm-up": [*train, "--max-steps", "0"],
            f"{self.steps} steps": [*train, "--max-steps", str(self.steps)],
            "embed": ["embed", run, vectors, "--dtype", "float16"],
            f"index, {QUERIES} searches": [
                *("search", run, "--queries", "queries.txt", "--vectors", vectors, "--index", "approximate")
            ],
            "link prediction": [*evaluate, "link_prediction", "--parts", "test"],
            "classes, clusters": [*evaluate, "classification", "clustering", *sample],
            "map of all nodes": ["map", run, "--vectors", vectors],
        }
        tables = [sys.executable, str(Path(__file__).resolve()), "--write", str(self.papers), "tables"]
        backbone = [sys.executable, str(Path(__file__).resolve()), "--cut", str(self.layers), "backbone"]
        heterformer = [sys.executable, "-m", "heterformer"]
        return {
            "tables": tables,
            "backbone": backbone,
            **{name: heterformer + words for name, words in commands.items()},
        }

    def measured(self) -> dict[str, Cost]:
        """The costs of all stages, of which those that were finished before are read."""
        self.folder.mkdir(parents=True, exist_ok=True)
        lines = [f"{PHRASES[i % len(PHRASES)]} topic {i}" for i in range(QUERIES)]
        (self.folder / "queries.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        ledger = self.folder / "costs.json"
        costs = {n: Cost(**c) for n, c in json.loads(ledger.read_text()).items()} if ledger.exists() else {}
        for name, command in self.stages().items():
            if name not in costs:
                print(f"{self.papers:,} papers: {name} …", file=sys.stderr, flush=True)
                costs[name] = cost_of(command, self.folder, name)
                ledger.write_text(json.dumps({n: asdict(c) for n, c in costs.items()}))
        return costs


def cost_of(command: list[str], folder: Path, name: str) -> Cost:
    """Run a command in the folder; what it prints goes to a file there."""
    before, start = written(folder), time.perf_counter()
    with (folder / f"{name.replace(' ', '-')}.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{name} failed; see {log.name}")
    seconds = time.perf_counter() - start
    cpu = usage.ru_utime + usage.ru_stime
    return Cost(seconds, cpu, usage.ru_maxrss * 1024, max(0, written(folder) - before))


def written(folder: Path) -> int:
    """The bytes of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def write_tables(papers: str, out: str) -> None:
    shutil.rmtree(out, ignore_errors=True)
    write_synthetic(Path(out), dblp_shaped(int(papers)))


def cut_backbone(layers: str, out: str) -> None:
    """MiniLM's first layers, with its tokenizer."""
    from transformers import AutoModel, AutoTokenizer

    from heterformer.models.plm.minilm import backbone_path

    path = backbone_path("minilm")
    model = AutoModel.from_pretrained(path)
    model.encoder.layer = model.encoder.layer[: int(layers)]
    model.config.num_hidden_layers = int(layers)
    model.save_pretrained(out)
    AutoTokenizer.from_pretrained(path).save_pretrained(out)
    for name in ("modules.json", "1_Pooling"):  # how its vectors are read
        source = Path(path) / name
        if source.is_dir():
            shutil.copytree(source, Path(out) / name, dirs_exist_ok=True)
        elif source.exists():
            shutil.copy(source, out)


def table(costs: dict[str, Cost], tenth: dict[str, Cost]) -> float:
    """Print it; gives the worst growth of the stages that take a second or more."""
    print(f"{'':24}{'clock':>9}{'CPU':>9}{'memory':>10}{'disk':>10}{'CPU, times':>12}{'memory, times':>15}")
    worst = 0.0
    for name, cost in costs.items():
        growth, memory = cost.cpu / max(tenth[name].cpu, 1e-9), cost.memory / tenth[name].memory
        worst = max(worst, growth)
        print(
            f"{name:24}{cost.seconds:>7.0f} s{cost.cpu:>7.0f} s{cost.memory / 2**30:>7.2f} GB"
            f"{cost.disk / 2**30:>7.2f} GB{growth:>12.1f}{memory:>15.1f}"
        )
    total = sum(cost.seconds for cost in costs.values())
    peak = max(cost.memory for cost in costs.values())
    print(f"all stages: {total / 60:.0f} minutes, peak memory {peak / 2**30:.2f} GB")
    return worst


HIDDEN: dict[str, Callable[[str, str], None]] = {"write": write_tables, "cut": cut_backbone}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--papers", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, help="where everything is kept")
    parser.add_argument("--layers", type=int, default=3, help="of MiniLM")
    parser.add_argument("--steps", type=int, default=300)
    for name in HIDDEN:
        parser.add_argument(f"--{name}", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    for name, function in HIDDEN.items():
        if words := getattr(options, name):
            function(*words)
            return
    if options.folder is None:
        parser.error("--folder is needed: what was finished is kept there")
    sizes = [
        Size(papers, options.folder.resolve() / str(papers), options.layers, options.steps)
        for papers in (options.papers // 10, options.papers)
    ]
    tenth, whole = (size.measured() for size in sizes)
    print(f"{options.papers:,} papers, the first {options.layers} layers of MiniLM")
    worst = table(whole, tenth)
    print(f"ten times the papers take at most {worst:.1f} times the processor time of a stage")


if __name__ == "__main__":
    main()
