"""Everything from raw tables to a map, at a given size and at a smaller one: time, memory, disk, growth.

    python benchmarks/end_to_end.py --papers 1000000 --folder FOLDER [--against 100000]

Synthetic tables of DBLP's shape are written and built; the network is described, exported and split; a
Heterformer on the first layers of MiniLM is warmed up and trained on cached states; all nodes are embedded,
as the first search of a run does, indexed and searched a hundred times; test pairs are ranked against all
papers; a sample is classified and clustered; and all nodes are mapped. Each stage is a command of its own, so
that its peak memory is its own. The precision is bf16 where the processor has it.

Stages that are finished are not repeated: the same command goes on after a stop. A stage that was stopped
goes on from what it had stored, and its costs are those of the last attempt, which the table marks.

The table has, for each stage, seconds of the clock and of the processors, peak memory, bytes that it left on
the disk, and by how much the processors' time and the memory have grown from the smaller size, by default a
tenth. The last line is the worst growth of a stage that takes ten seconds or more: of shorter ones most is
the start.
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
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
from build_scale import dblp_shaped

from heterformer import Network, Run
from heterformer.datasets.synthetic import write_synthetic
from heterformer.device import chosen_precision
from heterformer.files import write_text
from heterformer.temporary import remove_path

QUERIES = 100
SAMPLE = 10_000  # nodes that are classified and clustered
SHORT = 10.0  # seconds of the processors: of less the start of Python and PyTorch is a good part
# What a stage writes at its end as a whole and would not write again.
WHOLE = {"build": ["network.net"], "export to CSV": ["exported"], "split": ["split.parquet"]}
PHRASES = ("parsing of", "models for", "a study of", "learning", "evaluation of")


@dataclass(frozen=True)
class Cost:
    """What a stage took."""

    seconds: float
    cpu: float
    memory: int  # peak, in bytes
    disk: int  # bytes that it left
    resumed: bool = False  # whether an earlier attempt had begun it


@dataclass(frozen=True)
class Size:
    """One size of the whole, in a folder of its own."""

    papers: int
    folder: Path
    layers: int
    steps: int

    def stages(self) -> dict[str, list[str]]:
        """The commands, in order. None of them minds what it has already written itself."""
        net, run, split = "network.net", "run", "split.parquet"
        train = ["train", net, run, "--backbone", "backbone", "--split.file", split]
        train += ["--neighbor-states", "cached", "--precision", "auto", "--evaluate-every", str(self.steps)]
        train += ["--validation-pairs", "2000"]
        evaluate = ["evaluate", run, "--tasks"]
        sample = ["--classification.max-nodes", str(SAMPLE), "--clustering.sample", str(SAMPLE)]
        commands = {
            "build": ["build", "tables/network.yaml", net, "--data", "tables"],
            "describe": ["describe", net],
            "export to CSV": ["export", net, "exported", "--to", "csv"],
            "split": ["split", net, split],
            "warm-up": [*train, "--max-steps", "0"],
            f"{self.steps} steps": [*train, "--max-steps", str(self.steps)],
            "embed": [],
            f"index, {QUERIES} searches": [
                *("search", run, "--queries", "queries.txt", "--index", "approximate")
            ],
            "link prediction": [*evaluate, "link_prediction", "--parts", "test"],
            "classes, clusters": [*evaluate, "classification", "clustering", *sample],
            "map of all nodes": ["map", run],
        }
        own = [sys.executable, str(Path(__file__).resolve())]
        heterformer = [sys.executable, "-m", "heterformer"]
        return {
            "tables": [*own, "--write", str(self.papers), "tables"],
            "backbone": [*own, "--cut", str(self.layers), "backbone"],
            **{name: heterformer + words for name, words in commands.items()},
            "embed": [*own, "--embed", net, run],
        }

    def measured(self) -> dict[str, Cost]:
        """The costs of all stages, of which those that were finished before are read."""
        self.folder.mkdir(parents=True, exist_ok=True)
        lines = [f"{PHRASES[i % len(PHRASES)]} topic {i}" for i in range(QUERIES)]
        (self.folder / "queries.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        ledger, begun = self.folder / "costs.json", self.folder / "begun.txt"
        self._check_options()
        costs = {n: Cost(**c) for n, c in json.loads(ledger.read_text()).items()} if ledger.exists() else {}
        for name, command in self.stages().items():
            if name in costs:
                continue
            print(f"{self.papers:,} papers: {name} …", file=sys.stderr, flush=True)
            resumed = begun.exists() and begun.read_text() == name
            begun.write_text(name)
            for output in WHOLE.get(name, ()):  # of a stop between the end of a command and our note of it
                remove_path(self.folder / output)
            costs[name] = replace(cost_of(command, self.folder, name), resumed=resumed)
            write_text(ledger, json.dumps({n: asdict(c) for n, c in costs.items()}))
        return costs

    def _check_options(self) -> None:
        """Refuse a folder whose stages were measured with others."""
        file, own = self.folder / "options.json", {"layers": self.layers, "steps": self.steps}
        if file.exists() and (kept := json.loads(file.read_text())) != own:
            raise SystemExit(f"{self.folder}: was measured with {kept}, not {own}; take another folder")
        write_text(file, json.dumps(own))


def cost_of(command: list[str], folder: Path, name: str) -> Cost:
    """Run a command in the folder; what it prints goes to a file there."""
    before, start = stored(folder), time.perf_counter()
    with (folder / f"{name.replace(' ', '-')}.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{name} failed; see {log.name}")
    seconds = time.perf_counter() - start
    cpu = usage.ru_utime + usage.ru_stime
    return Cost(seconds, cpu, usage.ru_maxrss * 1024, max(0, stored(folder) - before))


def stored(folder: Path) -> int:
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


def embed_all(network: str, run: str) -> None:
    """What the first search, evaluation or map of a run does."""
    from heterformer.allocator import keep_freed_memory
    from heterformer.search.store import SearchStore

    keep_freed_memory()  # as the commands do
    SearchStore.open(Run(Path(run)), Network.open(network))


def table(costs: dict[str, Cost], smaller: dict[str, Cost]) -> float:
    """Print it; gives the worst growth of the stages that are not over at once."""
    heads = ("clock", "times", "CPU", "times", "memory", "times", "disk", "times")
    print(f"{'':28}" + "".join(f"{head:>9}" for head in heads))
    worst = 0.0
    for name, cost in costs.items():
        before = smaller[name]
        growth = cost.cpu / max(before.cpu, 1e-9)
        disk = f"{cost.disk / before.disk:.1f}" if before.disk else "-"
        resumed = cost.resumed or before.resumed
        if cost.cpu >= SHORT and not resumed:
            worst = max(worst, growth)
        print(
            f"{name + ' (resumed)' * resumed:28}"
            f"{cost.seconds:>7.0f} s{cost.seconds / max(before.seconds, 1e-9):>9.1f}"
            f"{cost.cpu:>7.0f} s{growth:>9.1f}"
            f"{cost.memory / 2**30:>6.2f} GB{cost.memory / before.memory:>9.1f}"
            f"{cost.disk / 2**30:>6.2f} GB{disk:>9}"
        )
    total = sum(cost.seconds for cost in costs.values())
    peak = max(cost.memory for cost in costs.values())
    print(f"all stages: {total / 60:.0f} minutes, peak memory {peak / 2**30:.2f} GB")
    return worst


HIDDEN: dict[str, Callable[[str, str], None]] = {
    "write": write_tables,
    "cut": cut_backbone,
    "embed": embed_all,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--papers", type=int, default=1_000_000)
    parser.add_argument("--against", type=int, help="the smaller size; a tenth unless given")
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
        for papers in (options.against or options.papers // 10, options.papers)
    ]
    smaller, whole = (size.measured() for size in sizes)
    precision = chosen_precision("auto", torch.device("cpu"))
    print(f"{options.papers:,} papers, the first {options.layers} layers of MiniLM, {precision}")
    worst = table(whole, smaller)
    times = sizes[1].papers / sizes[0].papers
    print(f"{times:.3g} times the papers take at most {worst:.1f} times the processor time of a stage")


if __name__ == "__main__":
    main()
