"""Every metric once: its name in files, its heading in tables and figures, and how it is computed.

Tables, Markdown, JSON, figures, comparisons and significance tests read the tuples below. A new metric is one
more entry. Nothing here needs PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from heterformer.arrays import Bools, Float64s

Ranks = NDArray[np.integer[Any]]  # (Q,) the rank, from 1, of each query's key
Ranking = Literal[
    "in_batch", "full", "full_with_links", "alone_in_batch", "alone_full", "alone_full_with_links"
]
# Of queries that are read without neighbours.
ALONE_RANKINGS: Mapping[Ranking, Ranking] = {
    "in_batch": "alone_in_batch",
    "full": "alone_full",
    "full_with_links": "alone_full_with_links",
}
ALONE = "alone_"  # begins the names of their metrics
WITH_LINKS = (
    "_with_links"  # ends the names of those by scores to which the log of a candidate's links is added
)


@dataclass(frozen=True)
class RankingMetric:
    """A mean over queries of what the rank of each query's key contributes.

    Args:
        name: Its name in Python, in ``test.json`` and in ``compare.json``.
        heading: Its heading in tables and figures.
        path: Where ``report.json`` has it.
        ranking: What it is computed from: ``in_batch``, among the keys of a batch of pairs, or ``full``,
            among all nodes of the key's type; ``full_with_links`` by scores with the log of a candidate's
            number of links; and those of queries read alone, ``alone_in_batch`` and so on.
        contribution: From ranks (Q,) to what each query adds to the mean (Q,).
        narrow_heading: A heading for tables of many columns, if the usual one is too wide.
        tested: Whether a comparison tests the difference between models.
        in_narrow_tables: Whether a comparison has room for it on a screen.
        watched: Whether early stopping watches it unless another one is chosen.
    """

    name: str
    heading: str
    path: tuple[str, ...]
    ranking: Ranking
    contribution: Callable[[Ranks], Float64s]
    narrow_heading: str = ""
    tested: bool = False
    in_narrow_tables: bool = True
    watched: bool = False

    def query_alone(self) -> RankingMetric:
        """The same metric of queries that are read without their neighbours, as a search reads a text."""
        name, heading = f"{ALONE}{self.name}", f"{self.heading} (query alone)"
        path, ranking = ("query_alone", *self.path), ALONE_RANKINGS[self.ranking]
        return replace(self, name=name, heading=heading, path=path, ranking=ranking)

    def with_links(self) -> RankingMetric:
        """The same metric of the full ranking by how likely a link is, which its candidate's links add to."""
        name, heading = f"{self.name}{WITH_LINKS}", f"{self.heading} + links"
        path = ("with_links", *self.path)
        return replace(self, name=name, heading=heading, path=path, ranking="full_with_links")

    def in_report(self, values: Mapping[str, Any]) -> float:
        """The metric in an entry of ``report.json``."""
        value: Any = values
        for word in self.path:
            value = value[word]
        return float(value)

    def mean(self, ranks: Ranks) -> float:
        """The metric over all queries."""
        return float(self.contribution(ranks).mean()) if len(ranks) else float("nan")

    def chance(self, candidates: Ranks) -> float:
        """What it is expected to be if each query's key has any rank among its ``candidates`` (Q,)."""
        if not len(candidates):
            return float("nan")
        sums = np.cumsum(self.contribution(np.arange(1, int(candidates.max()) + 1)))
        return float((sums[candidates - 1] / candidates).mean())


def hits_at(k: int) -> Callable[[Ranks], Float64s]:
    """1 if the key is among the first ``k``, else 0."""
    return lambda ranks: (ranks <= k).astype(np.float64)


def reciprocal_rank(ranks: Ranks) -> Float64s:
    """1, 1/2, 1/3, …"""
    return 1 / ranks.astype(np.float64)


def discounted_gain(ranks: Ranks) -> Float64s:
    """Of the full list with one relevant key, whose ideal gain is 1."""
    return 1 / np.log2(1 + ranks.astype(np.float64))


RANKING_METRICS = (
    RankingMetric("prec", "PREC", ("in_batch", "prec"), "in_batch", hits_at(1), tested=True, watched=True),
    RankingMetric("mrr", "MRR", ("in_batch", "mrr"), "in_batch", reciprocal_rank, tested=True),
    RankingMetric("ndcg", "NDCG", ("in_batch", "ndcg"), "in_batch", discounted_gain),
    RankingMetric("full_mrr", "full MRR", ("full", "mrr"), "full", reciprocal_rank, tested=True),
    RankingMetric(
        "hits_1", "Hits@1", ("full", "hits", "1"), "full", hits_at(1), tested=True, in_narrow_tables=False
    ),
    RankingMetric("hits_10", "Hits@10", ("full", "hits", "10"), "full", hits_at(10), "@10"),
    RankingMetric(
        "hits_100", "Hits@100", ("full", "hits", "100"), "full", hits_at(100), "@100", in_narrow_tables=False
    ),
)


# A search reads a text that has no neighbours; the keys have theirs.
QUERY_ALONE_METRICS = tuple(metric.query_alone() for metric in RANKING_METRICS)
WITH_LINKS_METRICS = tuple(metric.with_links() for metric in RANKING_METRICS if metric.ranking == "full")
ALONE_WITH_LINKS_METRICS = tuple(metric.query_alone() for metric in WITH_LINKS_METRICS)
EVERY_RANKING_METRIC = (
    *RANKING_METRICS,
    *WITH_LINKS_METRICS,
    *QUERY_ALONE_METRICS,
    *ALONE_WITH_LINKS_METRICS,
)


def ranking_metrics(ranks: Mapping[Ranking, Ranks]) -> dict[str, float]:
    """The metrics that the given ranks define, by name."""
    return {m.name: m.mean(ranks[m.ranking]) for m in EVERY_RANKING_METRIC if m.ranking in ranks}


def chance_metrics(in_batch: Ranks, full: Ranks) -> dict[str, float]:
    """What guessing gives, by name, for queries with these numbers of candidates."""
    return {m.name: m.chance(in_batch if m.ranking == "in_batch" else full) for m in RANKING_METRICS}


def no_better_than_chance(share: float, chance: float, queries: int) -> bool:
    """Whether a share of the queries is within two standard errors of what guessing gives, or below."""
    return share <= _luckiest(chance, queries)


def chance_verdict(chance: float, queries: int) -> str:
    """What is said of a share that is ``no_better_than_chance``: the end of a sentence."""
    if _luckiest(chance, queries) >= 1:
        too_few = "1 pair is" if queries == 1 else f"{queries:,} pairs are"
        return f"cannot be distinguished from chance ({chance:.4f}): {too_few} too few"
    return f"is no better than chance ({chance_range(chance, queries)})"


def chance_range(chance: float, queries: int) -> str:
    """What guessing gives so many queries, in words: the mean, and two standard errors above it."""
    return f"{chance:.4f}, with {queries:,} pairs up to {_luckiest(chance, queries):.4f}"


def _luckiest(chance: float, queries: int) -> float:
    return chance + 2 * math.sqrt(chance * (1 - chance) / max(queries, 1))


def ranking_metric(name: str) -> RankingMetric:
    """The metric with this name."""
    return next(m for m in EVERY_RANKING_METRIC if m.name == name)


@dataclass(frozen=True)
class RecommendationMetric:
    """A mean over queries, each with a list of candidates of which some are relevant.

    ``compute`` takes, of each relevant candidate, its query's number and its place in the list, from 1.
    """

    name: str
    heading: str
    compute: Callable[[Ranks, Ranks], float]


def recall_at(k: int) -> Callable[[Ranks, Ranks], float]:
    """The share of a query's relevant candidates that are among its first ``k``."""
    return lambda queries, places: float(
        (np.bincount(queries, places <= k) / np.bincount(queries)).mean() if len(queries) else np.nan
    )


def hit_rate_at(k: int) -> Callable[[Ranks, Ranks], float]:
    """Whether any of a query's relevant candidates is among its first ``k``."""
    return lambda queries, places: float(
        (np.bincount(queries, places <= k) > 0).mean() if len(queries) else np.nan
    )


def ndcg_at(k: int) -> Callable[[Ranks, Ranks], float]:
    """The discounted gain of the first ``k``, relative to that of a list with the relevant ones on top."""

    def compute(queries: Ranks, places: Ranks) -> float:
        if not len(queries):
            return float("nan")
        gains = np.bincount(queries, np.where(places <= k, discounted_gain(places), 0.0))
        ideal = np.cumsum(discounted_gain(np.arange(1, k + 1)))
        return float((gains / ideal[np.minimum(np.bincount(queries), k) - 1]).mean())

    return compute


RECOMMENDATION_METRICS = (
    RecommendationMetric("recall_20", "Recall@20", recall_at(20)),
    RecommendationMetric("ndcg_20", "NDCG@20", ndcg_at(20)),
    RecommendationMetric("hit_rate_10", "HitRate@10", hit_rate_at(10)),
)


def recommendation_metrics(queries: Ranks, ranks: Ranks) -> dict[str, float]:
    """The metrics of each query's list, from the filtered rank of each of its relevant candidates.

    A filtered rank is that among the candidates which are not relevant to the query. In the list, a relevant
    candidate comes after those and after the query's better relevant ones.
    """
    _, numbers = np.unique(queries, return_inverse=True)
    order = np.lexsort((ranks, numbers))
    counts = np.bincount(numbers)
    better = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    places = ranks[order] + better
    return {m.name: m.compute(numbers[order], places) for m in RECOMMENDATION_METRICS}


@dataclass(frozen=True)
class LabelMetric:
    """A metric of predicted labels: its name in JSON, its heading in tables, and its function."""

    name: str
    heading: str
    compute: Callable[[Any, Any], float]
    watched: bool = False  # as of ranking metrics
    higher_is_better: bool = True


def micro_f1(truth: Bools, predicted: Bools) -> float:
    """F1 over all decisions of (n, C); with one class per node it is accuracy."""
    hits, named = _hits_and_mentions(truth, predicted)
    return float(2 * hits.sum() / named.sum())


def macro_f1(truth: Bools, predicted: Bools) -> float:
    """The mean of the classes' F1. A class that no node has and none is predicted to have does not count."""
    hits, named = _hits_and_mentions(truth, predicted)
    is_predicted = named > 0
    return float((2 * hits[is_predicted] / named[is_predicted]).mean())


def _hits_and_mentions(truth: Bools, predicted: Bools) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(C,) true positives, and true plus predicted members: F1 is 2 * hits / mentions."""
    hits, mentions = (truth & predicted).sum(0), truth.sum(0) + predicted.sum(0)
    if not mentions.any():
        raise ValueError("expected at least one class in the truth or in the predictions")
    return hits, mentions


def normalized_mutual_information(truth: NDArray[Any], clusters: NDArray[Any]) -> float:
    """By the mean of the two entropies, 1 at best."""
    from sklearn.metrics import normalized_mutual_info_score  # takes a second

    return float(normalized_mutual_info_score(truth, clusters))


def adjusted_rand_index(truth: NDArray[Any], clusters: NDArray[Any]) -> float:
    """1 at best, 0 by chance."""
    from sklearn.metrics import adjusted_rand_score

    return float(adjusted_rand_score(truth, clusters))


def decided(scores: NDArray[np.floating[Any]], multi: bool) -> Bools:
    """The best class; where a node may have several, all with a score above 0 (a probability above a half).

    A node of which no class is that likely has the best one all the same: every node has a class.
    """
    chosen = scores > 0 if multi else np.zeros(scores.shape, dtype=bool)  # (n, C)
    none = ~chosen.any(1)
    chosen[none, scores[none].argmax(1)] = True
    return chosen


def root_mean_squared_error(truth: NDArray[Any], predicted: NDArray[Any]) -> float:
    """In the unit of the numbers; 0 at best."""
    return float(np.sqrt(np.mean((truth - predicted) ** 2)))


def mean_absolute_error(truth: NDArray[Any], predicted: NDArray[Any]) -> float:
    """In the unit of the numbers; 0 at best."""
    return float(np.mean(np.abs(truth - predicted)))


def determination(truth: NDArray[Any], predicted: NDArray[Any]) -> float:
    """R squared: 1 at best, 0 for the mean of the true numbers."""
    spread = float(((truth - truth.mean()) ** 2).sum())
    return 1 - float(((truth - predicted) ** 2).sum()) / max(spread, 1e-12)


CLASSIFICATION_METRICS = (
    LabelMetric("micro", "micro F1", micro_f1),
    LabelMetric("macro", "macro F1", macro_f1, watched=True),
)
REGRESSION_METRICS = (
    LabelMetric("r2", "R²", determination, watched=True),
    LabelMetric("rmse", "RMSE", root_mean_squared_error, higher_is_better=False),
    LabelMetric("mae", "MAE", mean_absolute_error, higher_is_better=False),
)
CLUSTERING_METRICS = (
    LabelMetric("nmi", "NMI", normalized_mutual_information),
    LabelMetric("ari", "ARI", adjusted_rand_index),
)


def watchable_metrics(task: str) -> tuple[str, ...]:
    """The names of a task's metrics that early stopping can maximise, the usual one first."""
    metrics: Iterable[RankingMetric | LabelMetric]
    if task == "link_prediction":
        metrics = [m for m in RANKING_METRICS if m.ranking == "in_batch"]  # as pairs are validated
    else:
        every = {"classification": CLASSIFICATION_METRICS, "regression": REGRESSION_METRICS}[task]
        metrics = [m for m in every if m.higher_is_better]
    return tuple(m.name for m in sorted(metrics, key=lambda m: not m.watched))


def metric_heading(name: str) -> str:
    """The heading of any metric that a training validates."""
    every = (*RANKING_METRICS, *CLASSIFICATION_METRICS, *REGRESSION_METRICS)
    return next(metric.heading for metric in every if metric.name == name)


def classification_metrics(truth: Bools, predicted: Bools) -> dict[str, float]:
    """The metrics of predictions (n, C) for nodes whose classes are ``truth`` (n, C), by name."""
    return {metric.name: metric.compute(truth, predicted) for metric in CLASSIFICATION_METRICS}


def regression_metrics(truth: NDArray[Any], predicted: NDArray[Any]) -> dict[str, float]:
    """The metrics of predicted numbers (n,), by name."""
    return {metric.name: metric.compute(truth, predicted) for metric in REGRESSION_METRICS}


def clustering_metrics(truth: NDArray[Any], clusters: NDArray[Any]) -> dict[str, float]:
    """The metrics of clusters (n,) of nodes whose classes are ``truth`` (n,), by name."""
    return {metric.name: metric.compute(truth, clusters) for metric in CLUSTERING_METRICS}


@dataclass(frozen=True)
class MetricSummary:
    """A metric's values in the order of the repeats, their mean and their spread."""

    values: tuple[float, ...]
    mean: float
    deviation: float | None
    """The sample standard deviation; one value has none."""

    @classmethod
    def from_values(cls, values: Iterable[float]) -> MetricSummary:
        values = tuple(map(float, values))
        return cls(values, fmean(values), stdev(values) if len(values) > 1 else None)

    @classmethod
    def from_repeats(cls, repeats: Iterable[Mapping[str, float]]) -> dict[str, MetricSummary]:
        """By metric, from what each repeat measured."""
        repeats = list(repeats)
        return {name: cls.from_values(repeat[name] for repeat in repeats) for name in repeats[0]}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> MetricSummary:
        return cls(tuple(values["values"]), values["mean"], values["deviation"])
