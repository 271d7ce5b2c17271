"""What a comparison found: runs side by side, means over seeds, and how sure the lead is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import fmean, stdev
from typing import Literal

import numpy as np

from heterformer.arrays import Float64s
from heterformer.comparison.job import Job, RunResult, query_ranks
from heterformer.comparison.options import ComparisonOptions
from heterformer.comparison.significance import Difference, paired_bootstrap, repeated_t_test
from heterformer.comparison.tuning import TunedRate
from heterformer.comparison.variants import Variant
from heterformer.metrics import EVERY_RANKING_METRIC, RankingMetric, ranking_metric
from heterformer.training.options import TrainingOptions

OWN_GROUPS = ("ablation", "dimension")  # of variants of Heterformer itself
Status = Literal["finished", "failed", "unfinished"]


@dataclass(frozen=True)
class SeedResult:
    """One run, or why there is none."""

    seed: int
    path: Path
    status: Status
    reason: str = ""
    result: RunResult | None = None


@dataclass(frozen=True)
class Row:
    """One variant over its seeds."""

    variant: Variant
    seeds: tuple[SeedResult, ...]

    @property
    def results(self) -> list[RunResult]:
        return [seed.result for seed in self.seeds if seed.result is not None]

    def has(self, metric: str) -> bool:
        """Whether all finished runs have it; those of earlier versions lack some."""
        return bool(self.results) and all(metric in result.figures for result in self.results)

    def label_figures(self) -> list[str]:
        """The names of what was classified and clustered."""
        labels = self.results[0].labels if self.results else None
        return [name for name in (labels.figures if labels else ()) if self.has(name)]

    def repeats(self, name: str) -> Float64s:
        """(R,): the values of each repeat of a task on labels, averaged over seeds."""
        each = [result.labels.repeats[name] for result in self.results if result.labels]
        values: Float64s = np.array(each).mean(0)
        return values

    def test_to_train(self, name: str) -> float:
        """Nodes of the test part for each of the training part."""
        return next(result.labels.test_to_train[name] for result in self.results if result.labels)

    def values(self, metric: str) -> list[float]:
        return [result.figures[metric] for result in self.results]

    def mean(self, metric: str) -> float:
        return fmean(self.values(metric))

    def deviation(self, metric: str) -> float | None:
        """The sample standard deviation over seeds; one seed has none."""
        values = self.values(metric)
        return stdev(values) if len(values) > 1 else None


@dataclass(frozen=True)
class Lead:
    """Heterformer against the best of the others, by one metric."""

    metric: str
    against: Variant
    difference: Difference

    @property
    def significant(self) -> bool:
        return self.difference.mean > 0 and self.difference.p < 0.05


@dataclass(frozen=True)
class ComparisonSetup:
    """What all runs of a comparison's folder have in common."""

    network: Path
    out: Path
    options: TrainingOptions
    evaluation: ComparisonOptions


@dataclass(frozen=True)
class Comparison:
    """The rows, in the order of the paper's tables."""

    network: str
    rows: tuple[Row, ...]
    setup: ComparisonSetup
    tuned: Mapping[str, TunedRate] = field(default_factory=dict)
    """The learning rates that were tried, by variant."""

    @cached_property
    def leads(self) -> tuple[Lead, ...]:
        """Heterformer against the best baseline, or where there is none against the best other variant."""
        return tuple(_leads(self.rows))

    @property
    def models(self) -> list[Row]:
        return [row for row in self.rows if row.variant.group not in OWN_GROUPS]

    @property
    def ablations(self) -> list[Row]:
        """Heterformer without its parts, after Heterformer itself."""
        rows = [row for row in self.rows if row.variant.group in OWN_GROUPS]
        whole = [row for row in self.rows if row.variant.name == "heterformer"]
        return [*whole, *rows] if rows else []

    @property
    def failed(self) -> list[tuple[Row, SeedResult]]:
        return [(row, seed) for row in self.rows for seed in row.seeds if seed.status == "failed"]


def gathered(
    network: str, jobs: Sequence[Job], setup: ComparisonSetup, tuned: Mapping[str, TunedRate] | None = None
) -> Comparison:
    """What the jobs' folders hold by now."""
    rows = []
    for variant in dict.fromkeys(job.variant.name for job in jobs):
        own = [job for job in jobs if job.variant.name == variant]
        rows.append(Row(own[0].variant, tuple(_seed_result(job) for job in own)))
    return Comparison(network, tuple(rows), setup, tuned or {})


def _seed_result(job: Job) -> SeedResult:
    if job.is_ranked():
        return SeedResult(job.seed, job.path, "finished", result=RunResult.open(job.path))
    if job.failure.is_file():
        return SeedResult(job.seed, job.path, "failed", job.failure.read_text(encoding="utf-8"))
    return SeedResult(job.seed, job.path, "unfinished")


def _leads(rows: Sequence[Row]) -> Iterable[Lead]:
    ranked = [metric.name for metric in EVERY_RANKING_METRIC if metric.tested]
    ours = next((row for row in rows if row.variant.name == "heterformer" and row.results), None)
    if ours is None:
        return
    for name in (*ranked, *ours.label_figures()):
        others = [row for row in rows if row is not ours and row.has(name)]
        baselines = [row for row in others if row.variant.group not in OWN_GROUPS]
        if not others or not ours.has(name):
            continue
        best = max(baselines or others, key=lambda row: row.mean(name))
        if (difference := _difference(ours, best, name)) is not None:
            yield Lead(name, best.variant, difference)


def _difference(ours: Row, other: Row, name: str) -> Difference | None:
    """Nothing if there is a single repeat, which no test can be made of."""
    if name not in ours.label_figures():
        metric = ranking_metric(name)
        return paired_bootstrap(query_contributions(ours, metric), query_contributions(other, metric))
    values, theirs = ours.repeats(name), other.repeats(name)
    if len(values) < 2 or values.shape != theirs.shape:
        return None
    return repeated_t_test(values, theirs, ours.test_to_train(name))


def query_contributions(row: Row, metric: RankingMetric) -> Float64s:
    """(Q,): what each test query contributes to the metric's mean, averaged over seeds."""
    runs = [query_ranks(seed.path) for seed in row.seeds if seed.result]
    contributions: Float64s = metric.contribution(np.stack([run[metric.ranking] for run in runs])).mean(0)
    return contributions
