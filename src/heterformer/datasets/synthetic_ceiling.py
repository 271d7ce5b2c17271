"""The best score that any model can reach on the synthetic network, from its planted truth."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from heterformer.arrays import AnyInts
from heterformer.datasets.synthetic import Column
from heterformer.datasets.synthetic_words import (
    AMBIGUOUS,
    FIELD_NAMES,
    FIELDS,
    PAIR_LISTS,
    SUBTOPICS,
    WORD_LISTS,
)
from heterformer.errors import InputError
from heterformer.stored import parquet_batches


def planted_ceiling(folder: Path, batch_size: int = 100, seed: int = 0) -> dict[str, float]:
    """The best expected in-batch PREC@1 on the network written to ``folder``, by simulated batches.

    ``network`` is what an oracle reaches that knows every paper's group and sub-topic, ``text`` one that
    knows only what the titles tell; neither uses the years. Each query has one of its citations drawn at
    random, the other queries' citations are the negatives, and ties are broken at random.
    """
    folder = Path(folder)
    pairs = _one_citation_per_query(folder / "cites.parquet", batch_size, np.random.default_rng(seed))
    papers = pq.read_table(folder / "papers.parquet", columns=["title", "subtopic", "group"])
    titles: Any = papers["title"].take(pairs.ravel()).to_pylist()
    subtopics: Any = papers["subtopic"].combine_chunks().dictionary_encode()
    subtopic, group = subtopics.indices.to_numpy(), papers["group"].to_numpy()
    size = np.bincount(subtopic)
    belief = _beliefs(titles, subtopics.dictionary.to_pylist(), size).reshape(*pairs.shape, -1)
    network, text = [], []
    for pair, (query, key) in zip(pairs, belief.transpose(0, 2, 1, 3), strict=True):
        closeness = [np.equal.outer(*cell[pair].T).astype(float) for cell in (subtopic, group)]
        network.append(_precision_at_1(sum(closeness)))
        text.append(_precision_at_1((query / size) @ key.T))  # the chance to be drawn from the sub-topic
    return {"network": float(np.mean(network)), "text": float(np.mean(text))}


def _one_citation_per_query(path: Path, batch_size: int, rng: np.random.Generator) -> AnyInts:
    """About 20,000 queries with one citation each, as numbers of papers: (batches, batch size, 2)."""
    chunks = [np.stack([_numbers(c) for c in batch.columns]) for batch in parquet_batches(path)]
    source, target = np.concatenate(chunks, axis=1)
    queries = rng.permutation(np.unique(source))
    count = min(len(queries), max(20_000, batch_size)) // batch_size * batch_size
    if count == 0:
        raise InputError(f"batch_size is {batch_size}, expected at most {len(queries)}, the citing papers.")
    is_query = np.zeros(source.max() + 1, dtype=bool)
    is_query[queries[:count]] = True
    edges = rng.permutation(np.flatnonzero(is_query[source]))
    _, first = np.unique(source[edges], return_index=True)
    chosen = rng.permutation(edges[first])
    return np.stack([source[chosen], target[chosen]], axis=1).reshape(-1, batch_size, 2)


def _numbers(ids: Column) -> AnyInts:
    digits: Column = pc.utf8_slice_codeunits(ids, 1)
    return np.asarray(digits.cast(pa.int32()))


def _beliefs(titles: Sequence[str], subtopics: Sequence[str], size: AnyInts) -> NDArray[np.float64]:
    """The probability of each sub-topic, of ``size`` papers, given a title: (titles, sub-topics)."""
    subtopic_of = {w: s for (_, s), words in zip(SUBTOPICS, WORD_LISTS, strict=True) for w in words}
    share = {f: np.array([s in FIELDS[f] for s in subtopics]) * size for f in FIELD_NAMES}
    belief = np.zeros((len(titles), len(subtopics)))
    for row, title in zip(belief, titles, strict=True):
        words = title.lower().split()
        named = [subtopic_of[w] for w in words if w in subtopic_of]
        if named:
            row[subtopics.index(named[0])] = 1.0
        else:
            for field in _possible_fields(words):
                row += share[field] / share[field].sum()
    belief /= belief.sum(axis=1, keepdims=True)
    return belief


def _possible_fields(words: Sequence[str]) -> list[str]:
    """The fields of an ambiguous title: both of each pair that has all its words, all equally likely."""
    content = set(words) & set().union(*PAIR_LISTS)
    pairs = zip(AMBIGUOUS, PAIR_LISTS, strict=True)
    return [field for pair, pair_words in pairs if content <= set(pair_words) for field in pair]


def _precision_at_1(score: NDArray[np.float64]) -> float:
    """How often a query's own citation (the diagonal) has the best score, ties being broken at random."""
    best = score >= score.max(axis=1, keepdims=True) * (1 - 1e-9)  # ties up to rounding
    return float((np.diagonal(best) / best.sum(axis=1)).mean())
