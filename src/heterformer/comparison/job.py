"""One run of a comparison: train it, rank the test pairs, note what it cost.

    python -m heterformer.comparison.job < job.json

is how a comparison runs it: in a process of its own, whose memory is that run's alone.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from heterformer.allocator import keep_freed_memory
from heterformer.comparison.label_tasks import LABELS, LabelResult, evaluate_labels
from heterformer.comparison.options import ComparisonOptions
from heterformer.comparison.variants import VARIANTS, Variant
from heterformer.errors import InputError
from heterformer.files import file_lock, reading, replace_file, write_text
from heterformer.metrics import RANKING_METRICS, Ranking, ranking_metrics
from heterformer.models.options import EveryModelOptions
from heterformer.network.store import Network
from heterformer.precision import precision_of_vectors
from heterformer.temporary import remove_path
from heterformer.training.options import TrainingOptions
from heterformer.training.run import Run

RESULT, RANKS, COST = "test.json", "test_ranks.npz", "cost.json"
RANKING_RULES = 2  # 2: with the links of candidates, too
LIMITS = ("epochs", "max_steps", "max_minutes")  # the budget proper


@dataclass(frozen=True)
class Cost:
    """What a run took, over all the processes that worked on it."""

    seconds: float
    """Of training, warm-up and validation included."""
    memory: float
    """The largest resident size of a training process, in MB."""
    gpu_memory: float | None
    """The most that tensors took on the GPU, in MB."""


@dataclass(frozen=True)
class RunResult:
    """A finished run's figures."""

    figures: dict[str, float]
    """Of the test pairs, by the names of ``heterformer.metrics.RANKING_METRICS`` and, for queries that are
    read alone, of ``QUERY_ALONE_METRICS``."""
    pairs: int
    full_queries: int
    candidates: int
    batch_size: int
    validation_prec: float
    best_step: int
    steps: int
    seconds_per_step: float
    parameters: int
    textless_parameters: int
    cost: Cost
    chance: dict[str, float] = field(default_factory=dict)
    """What guessing gives, by metric; empty if an earlier version ranked the pairs."""
    popularity: dict[str, float] = field(default_factory=dict)
    """What ranking keys by their number of edges gives."""

    steps_per_epoch: int = 0
    """0 if an earlier version ranked the pairs."""
    rules: int = 1
    """The version of the rules by which the pairs were ranked."""
    labels: LabelResult | None = None
    """What its vectors tell of classes, if that was asked for; the figures have the means."""

    @property
    def outdated(self) -> bool:
        """Whether an earlier version ranked the pairs, by other rules or fewer."""
        return self.rules < RANKING_RULES

    @classmethod
    def open(cls, run: Path) -> RunResult:
        with reading(run / RESULT):
            values: dict[str, Any] = json.loads((run / RESULT).read_text(encoding="utf-8"))
            if any(metric.name not in values["figures"] for metric in RANKING_METRICS):
                # Written before a metric was defined, which follows from the ranks.
                values["figures"] = ranking_metrics(query_ranks(run)) | values["figures"]
            labels = LabelResult.open(run)
            if labels is not None:
                values["figures"] = values["figures"] | labels.figures
            return cls(**values | {"cost": Cost(**values["cost"]), "labels": labels})


@dataclass(frozen=True)
class Trial:
    """A learning rate, and how far it came in a short training."""

    number: int
    """Among the trials of its model, the usual rate being the first."""
    rate: float
    validation_prec: float
    steps: int


@dataclass(frozen=True)
class Job:
    """A variant to train with a seed, beside the others of the comparison in the folder ``out``."""

    out: Path
    network: Path
    variant: Variant
    seed: int
    common: TrainingOptions
    evaluation: ComparisonOptions = field(default_factory=ComparisonOptions)
    tuned: tuple[str, float] | None = None
    """A learning rate in the place of the variant's own: the option, and its value."""
    trial: int | None = None
    """The number of the trial, if this is one: its run is removed and only its validation figure kept."""

    @property
    def path(self) -> Path:
        return self.out / "runs" / self.variant.name / f"seed-{self.seed}"

    @property
    def trial_file(self) -> Path:
        """What is left of a trial."""
        return self.path.with_name(f"{self.path.name}.trial.json")

    @property
    def failure(self) -> Path:
        """The file that says why the run failed."""
        return self.path.with_name(f"{self.path.name}.failed.txt")

    def note_failure(self, reason: str) -> None:
        self.failure.parent.mkdir(parents=True, exist_ok=True)
        write_text(self.failure, reason)

    @property
    def title(self) -> str:
        return f"{self.variant.display_name}, seed {self.seed}"

    def options(self) -> TrainingOptions:
        rate: dict[str, Any] = dict([self.tuned] if self.tuned else [])
        return replace(self.variant.options(self.common, self.seed), **rate).resolved()

    def is_ranked(self) -> bool:
        """Whether the run got as far as this budget lets it, and its test pairs are ranked."""
        run = Run(self.path)
        if not run.is_complete or not all((self.path / name).is_file() for name in (RESULT, RANKS)):
            return False
        own = run.options()
        return all(getattr(own, name) == getattr(self.common, name) for name in LIMITS)

    def is_done(self) -> bool:
        """Whether nothing is left to do: all is ranked, classified and clustered as it would be now."""
        if self.trial is not None:
            return self.trial_file.is_file() and _json(self.trial_file)["steps"] == self.common.max_steps
        return self.is_ranked() and not RunResult.open(self.path).outdated and self._labels_are_done()

    def _labels_are_done(self) -> bool:
        if not self.evaluation.on_labels:
            return True
        labels = LabelResult.open(self.path)
        return labels is not None and labels.options == self.evaluation.label_values()

    def to_json(self) -> str:
        values: dict[str, Any] = {
            "out": str(self.out),
            "network": str(self.network),
            "variant": self.variant.name,
        }
        values |= {"seed": self.seed, "common": self.common.to_dict(), "tuned": self.tuned}
        return json.dumps(values | {"evaluation": self.evaluation.to_dict(), "trial": self.trial})

    @classmethod
    def from_json(cls, text: str) -> Job:
        values = json.loads(text)
        common = TrainingOptions.from_dict(values["common"], EveryModelOptions)
        variant = VARIANTS[values["variant"]]
        return cls(
            Path(values["out"]),
            Path(values["network"]),
            variant,
            values["seed"],
            common,
            ComparisonOptions.from_dict(values["evaluation"]),
            tuple(values["tuned"]) if values["tuned"] else None,
            values["trial"],
        )


def carry_out(job: Job) -> None:
    """Train or go on, then rank the test pairs. Whatever ended too early is done again."""
    from heterformer.training.train import train

    if job.is_ranked() and not RunResult.open(job.path).outdated:  # labels are asked for now
        _evaluate_labels(job)
        return
    (job.path / RESULT).unlink(missing_ok=True)
    if not Run(job.path).started:
        (job.path / COST).unlink(missing_ok=True)
    started = time.monotonic()
    try:
        train(Network.open(job.network), job.path, job.options())
    finally:
        if Run(job.path).exists:
            _note_cost(job.path, time.monotonic() - started)
    if job.trial is not None:
        _keep_trial(job)
        return
    (job.path / LABELS).unlink(missing_ok=True)
    rank_test_pairs(job.path)
    if job.evaluation.on_labels:
        _evaluate_labels(job)


def _evaluate_labels(job: Job) -> None:
    from heterformer.evaluation.open_run import open_run

    evaluate_labels(open_run(job.path, job.common.device), job.evaluation)


def _keep_trial(job: Job) -> None:
    """The figure that decides; the weights are of no use any more."""
    assert job.tuned is not None
    assert job.trial is not None
    assert job.common.max_steps is not None
    _, early = Run(job.path).progress()
    trial = Trial(job.trial, job.tuned[1], early.best, job.common.max_steps)
    write_text(job.trial_file, json.dumps(asdict(trial)))
    remove_path(job.path)


def query_ranks(run: Path) -> dict[Ranking, NDArray[np.int64]]:
    """The rank of every test pair's key, by ranking."""
    with reading(run / RANKS), np.load(run / RANKS, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in get_args(Ranking) if name in arrays}


def rank_test_pairs(path: Path) -> None:
    """Leave the ranks of a run's test pairs and what they amount to, in the precision of its training."""
    from heterformer.device import computing_in
    from heterformer.evaluation.link_prediction import predicted_pairs
    from heterformer.evaluation.model_ranking import link_prediction_ranks
    from heterformer.evaluation.open_run import open_run

    options = Run(path).options()
    opened = open_run(path, options.device)
    pair_set = predicted_pairs(opened.network, {"test": opened.split.test})[0]  # of the first relation
    with computing_in(precision_of_vectors(options.precision), opened.model.device):
        (ranks,) = link_prediction_ranks(
            opened.model,
            opened.batcher,
            [pair_set],
            opened.seed,
            opened.run.path,
            link_weight=opened.link_weight,
        )
    links = ranks.result(pair_set, opened.network.schema)
    position, early = opened.run.progress()
    sizes = {name: p.numel() for name, p in opened.model.named_parameters()}
    result = RunResult(
        figures=links.metrics,
        pairs=links.pairs,
        full_queries=links.full_queries,
        candidates=links.candidates,
        batch_size=links.batch_size,
        validation_prec=early.best,
        best_step=early.best_step,
        steps=position.step,
        seconds_per_step=position.seconds / max(position.step, 1),
        parameters=sum(sizes.values()),
        textless_parameters=sum(n for name, n in sizes.items() if name.startswith("textless.tables.")),
        cost=_cost(path),
        steps_per_epoch=-(
            -sum(map(len, opened.split.part("train").values())) // max(1, position.pairs_per_step)
        ),
        chance=links.chance,
        popularity=links.popularity,
        rules=RANKING_RULES,
    )
    with replace_file(path / RANKS) as partial, partial.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **ranks.arrays())
    values = asdict(result)
    del values["labels"]  # in a file of its own
    write_text(path / RESULT, json.dumps(values, indent=1))


def _json(path: Path) -> dict[str, Any]:
    with reading(path):
        values: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return values


def _cost(path: Path) -> Cost:
    """What is noted of the run so far."""
    try:
        return Cost(**json.loads((path / COST).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return Cost(0.0, 0.0, None)


def _note_cost(path: Path, seconds: float) -> None:
    before, gpu = _cost(path), _gpu_memory()
    total = before.seconds + seconds
    if Run(path).started:  # a kill may have left time that only the checkpoint knows of
        position, _ = Run(path).progress()
        total = max(total, position.seconds_before + position.seconds)
    gpu = max(gpu or 0.0, before.gpu_memory or 0.0) or None
    cost = Cost(round(total, 1), round(max(before.memory, peak_memory()), 1), gpu)
    write_text(path / COST, json.dumps(asdict(cost)))


def peak_memory() -> float:
    """The largest resident size of this process so far, in MB."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        import resource

        unit = 2**20 if sys.platform == "darwin" else 2**10
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    # Not ru_maxrss, which begins with what the parent process had.
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 2**10


def _gpu_memory() -> float | None:
    import torch

    return torch.cuda.max_memory_allocated() / 2**20 if torch.cuda.is_available() else None


def one_sentence(error: BaseException) -> str:
    """Why a run failed."""
    if isinstance(error, OSError) and error.strerror:  # such as a full disk
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    first = next(iter(str(error).strip().splitlines()), "")
    return first if isinstance(error, InputError) else f"{type(error).__name__}: {first}".removesuffix(": ")


def main() -> None:
    """Carry out the job on standard input. Its end, when whoever started it is gone, stops the run."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    keep_freed_memory()
    job = Job.from_json(sys.stdin.readline())
    threading.Thread(target=_stop_when_parent_exits, daemon=True).start()
    try:
        with job_lock(job):
            if not job.is_done():
                carry_out(job)
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        with suppress(OSError):  # without room for it the parent says how this process ended
            job.note_failure(one_sentence(error))
        if not isinstance(error, (InputError, OSError)):
            raise
        sys.exit(1)


@contextmanager
def job_lock(job: Job) -> Iterator[None]:
    """Wait until no other process works on the run, such as one that still saves after its parent's end."""
    job.path.parent.mkdir(parents=True, exist_ok=True)
    with file_lock(job.path):
        yield


def _stop_when_parent_exits() -> None:
    while os.read(sys.stdin.fileno(), 1):  # unbuffered: Python must be able to end while this waits
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
