"""What regions of a map are about: clusters of places, each with the words that tell it from the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

LEVELS = (10, 40, 120)  # regions at most, from the whole map to a closer look
LEAST = 15  # nodes of a region on average: fewer say little
SAMPLED = 20_000  # nodes that regions and their words are found by
WORDS = 3  # of a region
COMMON = 0.1  # of a region's texts that have a word which is to name it, at least
TOKEN = r"(?u)\b[^\W\d_][\w'-]+\w\b"


@dataclass(frozen=True)
class Region:
    """A region of the map."""

    x: float
    y: float
    words: tuple[str, ...]  # the most telling first
    nodes: int  # of the sample
    level: int  # 0 for the coarsest


def region_counts(nodes: int) -> dict[int, int]:
    """How many regions are looked for at each level of a sample of this size."""
    counts = {level: min(most, nodes // LEAST) for level, most in enumerate(LEVELS)}
    return {n: count for n, count in counts.items() if count >= 2 and (not n or count > LEVELS[n - 1])}


def regions_of(
    places: NDArray[Any],
    texts: Sequence[str],
    seed: int = 0,
    advance: Callable[[int], object] | None = None,
) -> tuple[Region, ...]:
    """Regions of a sample of nodes at (n, 2) with these texts, level by level.

    A word's weight in a region is its part of the divergence between the region's texts and all:
    ``p * log(p / q)``, where p and q are the shares of texts that have it. What is neither frequent in the
    region nor rarer elsewhere names nothing. ``advance`` counts the regions of ``region_counts``.
    """
    presence, vocabulary = _presence(texts)
    if presence is None:
        return ()
    regions: list[Region] = []
    for level, count in region_counts(len(places)).items():
        regions += _level(places, presence, vocabulary, count, level, seed)
        if advance is not None:
            advance(count)
    return tuple(regions)


def _presence(texts: Sequence[str]) -> tuple[Any, NDArray[np.str_]]:
    """(n, words): which words each text has; nothing if no word is in two texts."""
    from sklearn.feature_extraction.text import CountVectorizer

    counter = CountVectorizer(
        binary=True,
        stop_words="english",
        token_pattern=TOKEN,
        min_df=2,
        max_features=20_000,
        dtype=np.float32,
    )
    try:
        presence = counter.fit_transform(texts)
    except ValueError:  # no words
        return None, np.array([], dtype=np.str_)
    return presence, counter.get_feature_names_out()


def _level(
    places: NDArray[Any], presence: Any, vocabulary: NDArray[np.str_], count: int, level: int, seed: int
) -> list[Region]:
    from scipy.sparse import csr_array
    from sklearn.cluster import MiniBatchKMeans

    clusters = MiniBatchKMeans(count, random_state=seed, n_init=3, batch_size=4096).fit(places).labels_
    sizes = np.bincount(clusters, minlength=count)  # (c,)
    ones = np.ones(len(clusters), np.float32)
    members = csr_array((ones, (clusters, np.arange(len(clusters)))), shape=(count, len(clusters)))
    shares = (members @ presence).toarray() / np.maximum(sizes, 1)[:, None]  # (c, words)
    overall = np.asarray(presence.mean(axis=0)).reshape(-1)  # (words,)
    weights = np.where(shares >= COMMON, shares * np.log(np.maximum(shares, 1e-9) / overall), 0)
    regions = []
    for cluster in np.flatnonzero(sizes):
        best = np.argsort(-weights[cluster], kind="stable")[:WORDS]
        words = tuple(str(vocabulary[i]) for i in best if weights[cluster, i] > 0)
        x, y = np.median(places[clusters == cluster], axis=0).tolist()
        if words:
            regions.append(Region(x, y, words, int(sizes[cluster]), level))
    return regions
