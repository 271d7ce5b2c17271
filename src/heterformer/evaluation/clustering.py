"""Node clustering (Section 4.4): do k-means clusters of fixed vectors coincide with the classes?"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from heterformer.errors import InputError
from heterformer.evaluation.options import ClusteringOptions
from heterformer.metrics import Repeated
from heterformer.network.labels import Labels, Vectors
from heterformer.progress import progress_bar


@dataclass(frozen=True)
class ClusteringResult:
    """How far clusters are classes; both figures are near 0 for vectors that know nothing of them."""

    nodes: int
    classes: dict[str, int]
    """Class to number of nodes, most frequent first; there are as many clusters."""
    nmi: Repeated
    """Normalised mutual information (by the mean of the two entropies), 1 at best."""
    ari: Repeated
    """Adjusted Rand index, 1 at best."""


def cluster(
    vectors: Vectors, labels: Labels, options: ClusteringOptions, progress: str | None = None
) -> ClusteringResult:
    """K-means of ``vectors`` (n, d) of the nodes ``labels.rows``, as many clusters as classes.

    Nodes with more than one class are left out first, then those that are not of the ``top_classes`` (of all
    labelled nodes), as the paper does; then the sample is drawn. ``progress`` names the bar.
    """
    from sklearn.cluster import KMeans  # takes a second
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    labels.check(vectors)
    chosen = _chosen(labels, options)
    known = labels.vectors_of(chosen, vectors)  # (n, d)
    truth, nmi, ari = chosen.codes, [], []
    with progress_bar(progress or f"clustering {labels.node_type}", options.runs) as bar:
        for run in range(options.runs):
            seed = np.random.SeedSequence([options.seed, run + 1]).generate_state(1)[0]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # of fewer distinct vectors than clusters
                found = KMeans(len(chosen.classes), n_init=1, random_state=int(seed)).fit_predict(known)
            nmi.append(normalized_mutual_info_score(truth, found))
            ari.append(adjusted_rand_score(truth, found))
            bar.advance()
    classes = dict(zip(chosen.classes, chosen.members.tolist(), strict=True))
    return ClusteringResult(len(chosen), classes, Repeated.of(nmi), Repeated.of(ari))


def _chosen(labels: Labels, options: ClusteringOptions) -> Labels:
    top = labels.classes[: options.top_classes]
    single = labels.single().of_classes(top)
    chosen = single.sample(options.sample, np.random.default_rng(options.seed))
    if len(chosen.classes) < 2:
        found = f"{len(chosen):,} nodes with exactly one class have {len(chosen.classes)} classes among them"
        raise InputError(f"{labels.node_type}: {found}, expected at least two.")
    return chosen
