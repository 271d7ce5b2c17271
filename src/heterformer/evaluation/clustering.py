"""Node clustering (Section 4.4): do k-means clusters of fixed vectors coincide with the classes?"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from heterformer.arrays import AnyFloats, Ints
from heterformer.errors import InputError
from heterformer.evaluation.options import ClusteringOptions
from heterformer.metrics import CLUSTERING_METRICS, MetricSummary, clustering_metrics
from heterformer.network.labels import Labels
from heterformer.progress import progress_bar


@dataclass(frozen=True)
class ClusteringResult:
    """How well clusters agree with classes; all metrics are near 0 for random vectors."""

    nodes: int
    classes: dict[str, int]
    """Class to number of nodes, most frequent first; there are as many clusters."""
    metrics: dict[str, MetricSummary]
    """By the names of ``heterformer.metrics.CLUSTERING_METRICS``."""

    def to_json(self) -> dict[str, Any]:
        """As ``report.json`` has it: the metrics beside the sizes."""
        metrics = {name: asdict(repeated) for name, repeated in self.metrics.items()}
        return {"nodes": self.nodes, "classes": self.classes, **metrics}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> ClusteringResult:
        metrics = {metric.name: MetricSummary.from_json(values[metric.name]) for metric in CLUSTERING_METRICS}
        return cls(values["nodes"], values["classes"], metrics)


def cluster(
    lookup: Callable[[Ints], AnyFloats],
    labels: Labels,
    options: ClusteringOptions,
    progress: str | None = None,
) -> ClusteringResult:
    """K-means of the vectors of labelled nodes, as many clusters as classes.

    ``lookup`` gives the vectors (n, d) of nodes in some rows, and is asked for those that are drawn. Nodes
    with more than one class are left out first, then those that are not of the ``top_classes`` (of all
    labelled nodes), as the paper does; then the sample is drawn. ``progress`` names the bar.
    """
    from sklearn.cluster import KMeans  # takes a second
    from sklearn.exceptions import ConvergenceWarning

    labels.check_classes()
    chosen = _chosen(labels, options)
    known = chosen.vectors_by(lookup)  # (n, d)
    measured = []
    with progress_bar(progress or f"clustering {labels.node_type}", options.runs, "runs") as bar:
        for run in range(options.runs):
            seed = np.random.SeedSequence([options.seed, run + 1]).generate_state(1)[0]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # of fewer distinct vectors than clusters
                clusters = KMeans(len(chosen.classes), n_init=1, random_state=int(seed)).fit_predict(known)
            measured.append(clustering_metrics(chosen.codes, clusters))
            bar.advance()
    classes = dict(zip(chosen.classes, chosen.members.tolist(), strict=True))
    return ClusteringResult(len(chosen), classes, MetricSummary.from_repeats(measured))


def _chosen(labels: Labels, options: ClusteringOptions) -> Labels:
    top = labels.classes[: options.top_classes]
    single = labels.single().of_classes(top)
    chosen = single.sample(options.sample, np.random.default_rng(options.seed))
    if len(chosen.classes) < 2:
        problem = (
            f"{len(chosen):,} nodes with exactly one class have {len(chosen.classes)} classes among them"
        )
        raise InputError(f"{labels.node_type}: {problem}, expected at least two.")
    return chosen
