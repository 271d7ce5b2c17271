"""Link prediction: the paper's in-batch ranking, and the filtered ranking against all candidates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from heterformer.batches.batcher import Batcher
from heterformer.batches.pairs import evaluation_key
from heterformer.batches.sampling import Ints
from heterformer.embedding.states import stored_states
from heterformer.models.contract import NodeEncoder
from heterformer.models.inference import center_vectors
from heterformer.network.adjacency import ranges
from heterformer.network.schema import NodeType
from heterformer.network.split import Pairs
from heterformer.network.store import Network
from heterformer.progress import progress_bar
from heterformer.training.ranking import RankingMetrics, Scorer, hits, in_batch_ranks

CANDIDATES, QUERIES = 2048, 4096  # scored at a time: 32 MB
PAIRS = 4096  # whose vectors are held at a time
FULL_RANKING_QUERIES = 10_000  # at most, per part: its cost is queries times candidates
ROUNDING = 1e-6


@dataclass(frozen=True)
class FullRanking:
    """Each query's key among all nodes of its type, other known answers taken out."""

    queries: int
    candidates: int
    mrr: float
    hits: dict[int, float]  # at 1, 10, 100


@dataclass(frozen=True)
class LinkPrediction:
    """The figures of one part of the split."""

    part: str
    pairs: int
    batch_size: int
    in_batch: RankingMetrics
    full: FullRanking


@dataclass(frozen=True)
class Ranks:
    """What the figures are means of: the rank of each pair's key."""

    in_batch: Tensor  # (P,)
    full: Tensor  # (P,), or of the first 10,000 pairs

    def figures(self, part: str, batch_size: int, candidates: int) -> LinkPrediction:
        full = FullRanking(
            len(self.full), candidates, (1 / self.full.double()).mean().item(), hits(self.full)
        )
        in_batch = RankingMetrics.of(self.in_batch)
        return LinkPrediction(part, len(self.in_batch), batch_size, in_batch, full)


def evaluate_link_prediction(
    model: NodeEncoder,
    batcher: Batcher,
    parts: dict[str, Pairs],
    seed: int,
    folder: Path | None = None,
) -> list[LinkPrediction]:
    """Both rankings of each part's pairs. Memory depends neither on the number of candidates nor of pairs."""
    size, candidates = batcher.schema.test_batch_size, batcher.schema.counts[batcher.schema.predicted.target]
    found = link_prediction_ranks(model, batcher, parts, seed, folder)
    return [ranks.figures(part, size, candidates) for part, ranks in found.items()]


def link_prediction_ranks(
    model: NodeEncoder,
    batcher: Batcher,
    parts: dict[str, Pairs],
    seed: int,
    folder: Path | None = None,
) -> dict[str, Ranks]:
    """The ranks of each part's keys, in the order of its pairs. Texts' states go to a file in ``folder``."""
    schema, network = batcher.schema, batcher.visible.network
    relation, key, size = schema.predicted, evaluation_key(seed), schema.test_batch_size
    with stored_states(model, batcher.tokens, folder) as states:

        def vectors(node_type: NodeType, rows: Ints) -> Tensor:
            return center_vectors(model, batcher, node_type, rows, key, states)

        in_batch: dict[str, Tensor] = {}
        asked, queries, keys = [], [], []
        for part, pairs in parts.items():
            ranks = []
            for block in _slices(len(pairs), size * max(1, PAIRS // size)):  # whole batches at a time
                ends = vectors(relation.source, pairs[block, 0]), vectors(relation.target, pairs[block, 1])
                ranks.append(in_batch_ranks(*ends, size, model.scores))
                if (kept := FULL_RANKING_QUERIES - block.start) > 0:
                    asked.append(pairs[block][:kept])
                    queries.append(ends[0][:kept])
                    keys.append(ends[1][:kept])
            in_batch[part] = torch.cat(ranks)
        candidates = _candidates(vectors, relation.target, schema.counts[relation.target])
        found = full_ranks(
            network, np.concatenate(asked), torch.cat(queries), torch.cat(keys), candidates, model.scores
        )
    counts = [min(len(pairs), FULL_RANKING_QUERIES) for pairs in parts.values()]
    full = dict(zip(parts, torch.split(found, counts), strict=True))
    return {part: Ranks(in_batch[part], full[part]) for part in parts}


def _candidates(
    vectors: Callable[[NodeType, Ints], Tensor], node_type: NodeType, count: int
) -> Iterator[tuple[int, Tensor]]:
    """The vectors of all candidates, some at a time, each with the row of its first."""
    with progress_bar("ranking all candidates", count) as bar:
        for start in range(0, count, CANDIDATES):
            stop = min(start + CANDIDATES, count)
            yield start, vectors(node_type, np.arange(start, stop))
            bar.advance(stop - start)


def full_ranks(
    network: Network,
    pairs: Pairs,
    queries: Tensor,
    keys: Tensor,
    candidates: Iterator[tuple[int, Tensor]],
    scorer: Scorer,
) -> Tensor:
    """(P,) the rank of each key among all candidates but the query itself and the query's other true keys.

    Ties count against the model. Candidates are met once, block by block.
    """
    blocks = _slices(len(pairs), QUERIES)
    own = torch.cat([_own_scores(queries[b], keys[b], scorer) for b in _slices(len(pairs), 256)])  # (P,)
    ranks = torch.ones(len(pairs), dtype=torch.int64)
    query_of, excluded = _excluded(network, pairs)
    for start, vectors in candidates:
        a, b = np.searchsorted(excluded, [start, start + len(vectors)])
        row, column = torch.from_numpy(query_of[a:b]), torch.from_numpy(excluded[a:b] - start)
        for block in blocks:
            better = ~(scorer(queries[block], vectors) < own[block, None])  # (Q, C)
            mine = (row >= block.start) & (row < block.stop)
            better[row[mine] - block.start, column[mine]] = False
            ranks[block] += better.sum(1)
    return ranks


def _own_scores(queries: Tensor, keys: Tensor, scorer: Scorer) -> Tensor:
    """The scores of queries with their keys, less what products of other shapes may round otherwise.

    So equal vectors tie wherever they are met. A score can be small because large terms cancel out, and
    rounding is relative to the terms.
    """
    terms = scorer(queries.abs(), keys.abs()).diagonal()
    return scorer(queries, keys).diagonal() - ROUNDING * terms


def _slices(count: int, size: int) -> list[slice]:
    return [slice(i, i + size) for i in range(0, count, size)]


def _excluded(network: Network, pairs: Pairs) -> tuple[Ints, Ints]:
    """(query number, candidate row), sorted by candidate: what is not ranked against the query's key."""
    relation = network.schema.predicted
    adjacency = network.adjacency(relation.source, relation.target)
    number = network.schema.edge_types.index(relation.forward)
    start, stop = adjacency.indptr[pairs[:, 0]], adjacency.indptr[pairs[:, 0] + 1]
    positions = ranges(start, stop)
    true = adjacency.edge_type[positions] == number
    query = [np.repeat(np.arange(len(pairs)), stop - start)[true], np.arange(len(pairs))]
    node = [adjacency.neighbor[positions[true]].astype(np.int64), pairs[:, 1]]
    if relation.source == relation.target:
        query.append(np.arange(len(pairs)))
        node.append(pairs[:, 0])
    query_of, excluded = np.concatenate(query), np.concatenate(node)
    order = np.argsort(excluded, kind="stable")
    return query_of[order], excluded[order]
