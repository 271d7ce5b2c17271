"""Link prediction: held-out pairs, the ranks of their keys, and the metrics that are means over them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from heterformer.metrics import (
    ALONE,
    EVERY_RANKING_METRIC,
    QUERY_ALONE_METRICS,
    RANKING_METRICS,
    WITH_LINKS_METRICS,
    Ranking,
    RankingMetric,
    chance_verdict,
    metric_heading,
    no_better_than_chance,
    ranking_metrics,
)
from heterformer.network.schema import Relation, Schema
from heterformer.network.split.pairs import Pairs
from heterformer.network.store import Network


@dataclass(frozen=True)
class LinkPrediction:
    """The metrics of the held-out pairs of one relation and part of the split."""

    relation: str
    part: str
    pairs: int
    batch_size: int
    """Number of pairs in a batch of the in-batch ranking, whose keys are each other's candidates."""
    full_queries: int
    """Number of queries of the full ranking."""
    candidates: int
    """Number of candidates of the full ranking; a query's other true keys are left out."""
    metrics: dict[str, float]
    """By the names of ``heterformer.metrics.RANKING_METRICS`` and, if queries were read alone as well, of
    ``QUERY_ALONE_METRICS``, keys being read with their neighbours in both; and of both ``with_links``, if the
    number of a candidate's links says more than the scores know."""
    chance: dict[str, float]
    """What guessing gives, by the names of ``RANKING_METRICS``."""
    popularity: dict[str, float]
    """What ranking keys by their number of visible edges gives, whatever the query."""

    @property
    def query_alone(self) -> bool:
        """Whether queries were read without their neighbours, too, as a search reads a text."""
        return QUERY_ALONE_METRICS[0].name in self.metrics

    @property
    def with_links(self) -> bool:
        """Whether candidates were ranked by how likely a link is, too, to which their links add."""
        return WITH_LINKS_METRICS[0].name in self.metrics

    @property
    def metric_table(self) -> tuple[RankingMetric, ...]:
        """The metrics that it has."""
        return tuple(metric for metric in EVERY_RANKING_METRIC if metric.name in self.metrics)

    def chance_notes(self) -> list[str]:
        """A sentence for each reading of the queries whose PREC chance may explain."""
        chance, metrics, heading = self.chance["prec"], self.metrics, metric_heading("prec")
        readings = {"prec": self.part, f"{ALONE}prec": f"{self.part}, query alone"}
        verdict = chance_verdict(chance, self.pairs)
        return [
            f"{self.relation} ({words}): {heading} {metrics[name]:.4f} {verdict}."
            for name, words in readings.items()
            if name in metrics and no_better_than_chance(metrics[name], chance, self.pairs)
        ]

    def to_json(self) -> dict[str, Any]:
        """As ``report.json`` has it: the metrics of each ranking beside its sizes."""
        values: dict[str, Any] = {
            "relation": self.relation,
            "part": self.part,
            "pairs": self.pairs,
            "batch_size": self.batch_size,
            "in_batch": {},
            "full": {"queries": self.full_queries, "candidates": self.candidates},
            "chance": self.chance,
            "popularity": self.popularity,
        }
        for metric in self.metric_table:
            *folders, last = metric.path
            place = values
            for folder in folders:
                place = place.setdefault(folder, {})
            place[last] = self.metrics[metric.name]
        return values

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> LinkPrediction:
        """A KeyError if it lacks a metric, as reports from before that metric do."""
        metrics = [metric for metric in EVERY_RANKING_METRIC if _is_reported(metric, values)]
        return cls(
            values["relation"],
            values["part"],
            values["pairs"],
            values["batch_size"],
            values["full"]["queries"],
            values["full"]["candidates"],
            {metric.name: metric.in_report(values) for metric in metrics},
            {metric.name: values["chance"][metric.name] for metric in RANKING_METRICS},
            {metric.name: values["popularity"][metric.name] for metric in RANKING_METRICS},
        )


def _is_reported(metric: RankingMetric, values: Mapping[str, Any]) -> bool:
    """Whether a report has the metric's ranking; if it has, and not the metric itself, it is an older one."""
    *folders, _ = metric.path
    for folder in folders:
        if folder in ("query_alone", "with_links") and folder not in values:
            return False
        values = values.get(folder, {})
    return True


@dataclass(frozen=True)
class Ranks:
    """The rank of each pair's key, which the metrics are means over."""

    by_ranking: Mapping[Ranking, Tensor]  # (P,) each; of full ones that of the first 10,000 pairs
    candidates: int
    chance: dict[str, float]
    popularity: dict[str, float]
    popular_full: Tensor  # the full ranks by popularity

    @property
    def in_batch(self) -> Tensor:
        return self.by_ranking["in_batch"]

    @property
    def full(self) -> Tensor:
        return self.by_ranking["full"]

    def arrays(self) -> dict[Ranking, NDArray[np.int64]]:
        """The ranks by ranking, as far as there are some."""
        return {ranking: ranks.numpy() for ranking, ranks in self.by_ranking.items()}

    def result(self, pair_set: PairSet, schema: Schema) -> LinkPrediction:
        return LinkPrediction(
            relation=pair_set.relation.name,
            part=pair_set.part,
            pairs=len(self.in_batch),
            batch_size=schema.test_batch_size,
            full_queries=len(self.full),
            candidates=self.candidates,
            metrics=ranking_metrics(self.arrays()),
            chance=self.chance,
            popularity=self.popularity,
        )


@dataclass(frozen=True)
class PairSet:
    """Held-out (query, key) pairs of one relation and part: which of all targets is each query's key?"""

    part: str
    relation: Relation
    pairs: Pairs


def predicted_pairs(
    network: Network, parts: Mapping[Any, Pairs] | Mapping[Any, Mapping[str, Pairs]]
) -> list[PairSet]:
    """The pairs of the predicted relations, or of the first alone, in some parts of a split."""
    return [
        PairSet(part, relation, pairs[relation.name] if isinstance(pairs, Mapping) else pairs)
        for number, relation in enumerate(network.schema.predicted)
        for part, pairs in parts.items()
        if isinstance(pairs, Mapping) or number == 0
    ]
