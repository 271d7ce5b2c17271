"""Recommendation: all held-out keys of a query at once, in the list of all nodes that it is not linked to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, Self

import numpy as np

from heterformer.arrays import Ints
from heterformer.batches.visible import VisibleNetwork
from heterformer.distributed import ProcessGroup
from heterformer.evaluation.link_prediction import PairSet
from heterformer.evaluation.pair_ranking import RankingSizes, rank_pairs
from heterformer.evaluation.reference import popularity
from heterformer.metrics import RECOMMENDATION_METRICS, recommendation_metrics
from heterformer.network.schema import NodeType, Relation
from heterformer.network.split.pairs import Pairs
from heterformer.ranking import Scorer
from heterformer.states.vector_cache import VectorsOf

Group = Literal["all", "cold targets", "cold queries"]


@dataclass(frozen=True)
class RecommendationResult:
    """The metrics of the lists of some queries, such as users, of one relation and part of the split."""

    relation: str
    part: str
    group: Group
    """All pairs; those whose targets have no visible edge of the relation, ranked among each other; or those
    of queries that training has not seen."""
    queries: int
    pairs: int
    candidates: int
    metrics: dict[str, float]
    """By the names of ``heterformer.metrics.RECOMMENDATION_METRICS``."""
    popularity: dict[str, float]
    """What ranking by the number of visible edges gives, whatever the query."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """A KeyError if it lacks a metric, as reports from before that metric do."""
        metrics, popular = (
            {metric.name: values[name][metric.name] for metric in RECOMMENDATION_METRICS}
            for name in ("metrics", "popularity")
        )
        return cls(**{**values, "metrics": metrics, "popularity": popular})


def recommendations(
    pair_sets: Sequence[PairSet],
    vectors: VectorsOf,
    visible: VisibleNetwork,
    scorer: Callable[[Relation], Scorer],
    unseen: Mapping[NodeType, Ints],
    vector_rows: Mapping[NodeType, Ints] | None = None,
    processes: ProcessGroup | None = None,
    sizes: RankingSizes | None = None,
) -> list[RecommendationResult]:
    """The figures of those pair sets whose relation has a textless end; arguments as in ``rank_pairs``.

    ``unseen`` are the nodes that training has not seen.
    """
    schema, sizes, results = visible.network.schema, sizes or RankingSizes(), list[RecommendationResult]()
    for pair_set in pair_sets:
        relation = pair_set.relation
        if schema.textless_end(relation) is None or not len(pair_set.pairs):
            continue
        rows = (vector_rows or {}).get(relation.target, np.arange(schema.counts[relation.target]))
        cold = rows[popularity(visible, relation).numpy()[rows] < 1]
        new = np.isin(pair_set.pairs[:, 0], unseen.get(relation.source, cold[:0]))
        of_cold = np.isin(pair_set.pairs[:, 1], cold)
        groups: list[tuple[Group, Pairs, Ints]] = [("all", pair_set.pairs, rows)]
        groups += [("cold targets", pair_set.pairs[of_cold], cold)] * bool(of_cold.any())
        groups += [("cold queries", pair_set.pairs[new], rows)] * bool(new.any() and not new.all())
        for group, pairs, among in groups:
            ranked_pairs = whole_queries(pairs, sizes.full_queries)
            among_rows = {**(vector_rows or {}), relation.target: among}
            (ranks,) = rank_pairs(
                [replace(pair_set, pairs=ranked_pairs)],
                vectors,
                visible,
                scorer,
                among_rows,
                processes=processes,
                sizes=replace(sizes, full_queries=len(ranked_pairs)),
            )
            results.append(
                RecommendationResult(
                    relation.name,
                    pair_set.part,
                    group,
                    len(np.unique(ranked_pairs[:, 0])),
                    len(ranked_pairs),
                    len(among),
                    recommendation_metrics(ranked_pairs[:, 0], ranks.full.numpy()),
                    recommendation_metrics(ranked_pairs[:, 0], ranks.popular_full.numpy()),
                )
            )
    return results


def whole_queries(pairs: Pairs, most: int) -> Pairs:
    """All pairs of as many queries as there is room for, in the order in which queries are first met."""
    _, first, place = np.unique(pairs[:, 0], return_index=True, return_inverse=True)
    ordered: Pairs = pairs[np.argsort(first[place], kind="stable")]
    if len(ordered) <= most:
        return ordered
    ends = np.flatnonzero(np.diff(ordered[:, 0])) + 1  # where another query begins
    fitting = ends[ends <= most]
    return ordered[: fitting[-1] if len(fitting) else ends[0]]
