"""Mining of hard negatives: nodes whose texts are close to a query's, in a band of ranks.

The closest of all are left out, since a good part of them are true links that nobody has noted. Known
neighbours are no candidates. Held-out pairs are not consulted, as everywhere in training.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from heterformer.arrays import Ints
from heterformer.batches.hard_negatives import HardNegatives, known_neighbors
from heterformer.batches.randomness import stream_key, uniform
from heterformer.batches.visible import VisibleNetwork
from heterformer.network.schema import Relation

HARD_NEGATIVES = 7  # the purpose of its random stream, beside those of batches
BAND = (10, 100)  # of ranks, counted from 0
MOST_CANDIDATES = 100_000  # a random part of more: time and memory stay bounded
QUERIES_AT_ONCE = 256


def candidates(
    visible: VisibleNetwork,
    seed: int,
    step: int,
    most: int = MOST_CANDIDATES,
    relation: Relation | None = None,
) -> Ints:
    """The nodes that can be mined at a step: all of a predicted relation's target type but hidden ones."""
    target = (relation or visible.network.schema.predicted[0]).target
    rows = np.arange(visible.network.schema.counts[target])
    if target in visible.hidden:
        rows = np.setdiff1d(rows, visible.hidden[target])
    if len(rows) > most:
        draw = uniform(stream_key(HARD_NEGATIVES, seed, step), rows, 1)[:, 0]
        rows = np.sort(rows[np.argsort(draw, kind="stable")[:most]])
    return rows


def mine(
    visible: VisibleNetwork,
    queries: Ints,
    query_vectors: Tensor,
    nodes: Ints,
    vectors: Tensor,
    count: int,
    seed: int,
    step: int,
    band: tuple[int, int] = BAND,
    relation: Relation | None = None,
) -> HardNegatives:
    """``count`` of the candidate ``nodes`` for each query, drawn from a band of ranks by inner product.

    ``query_vectors`` are (Q, d), ``vectors`` (C, d). A draw depends on the seed, the step and the query.
    """
    negatives = np.full((len(queries), count), -1, dtype=np.int64)
    low, high = band
    key = stream_key(HARD_NEGATIVES, seed, step, 1)
    for start in range(0, len(queries), QUERIES_AT_ONCE):
        part = slice(start, min(start + QUERIES_AT_ONCE, len(queries)))
        scores = query_vectors[part] @ vectors.T  # (q, C)
        place, known = known_neighbors(visible, queries[part], relation)
        column = np.searchsorted(nodes, known)
        inside = column < len(nodes)
        inside[inside] = nodes[column[inside]] == known[inside]
        scores[torch.from_numpy(place[inside]), torch.from_numpy(column[inside])] = -torch.inf
        best = torch.topk(scores, min(high, len(nodes)), dim=1)
        columns, values = (ranked.cpu().numpy()[:, low:] for ranked in (best.indices, best.values))
        able = values > -np.inf  # (q, band)
        draw = np.where(able, uniform(key, queries[part], able.shape[1]), np.inf)
        order = np.argsort(draw, axis=1, kind="stable")[:, :count]
        chosen, able = (np.take_along_axis(values, order, 1) for values in (nodes[columns], able))
        negatives[part, : chosen.shape[1]] = np.where(able, chosen, -1)
    return HardNegatives(queries, negatives)
