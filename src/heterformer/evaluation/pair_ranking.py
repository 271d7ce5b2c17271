"""Ranks of held-out pairs by vectors: in batches, as in the paper, and filtered against all candidates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from heterformer.arrays import Ints, ranges
from heterformer.batches.visible import VisibleNetwork
from heterformer.distributed import ProcessGroup
from heterformer.evaluation.link_prediction import PairSet, Ranks
from heterformer.evaluation.reference import candidate_counts, popularity
from heterformer.metrics import (
    ALONE_RANKINGS,
    Ranking,
    chance_metrics,
    ranking_metrics,
)
from heterformer.network.schema import NodeType, Relation
from heterformer.network.split.pairs import Pairs
from heterformer.network.store import Network
from heterformer.progress import progress_bar
from heterformer.ranking import ExcludedCandidates, Scorer, in_batch_ranks
from heterformer.search.index import ROUNDING
from heterformer.states.vector_cache import VectorsOf


@dataclass(frozen=True)
class RankingSizes:
    """How much is in memory at a time, and how many queries the full ranking takes."""

    candidates: int = 2048  # scored at a time
    queries: int = 4096  # scored at a time: with the candidates 32 MB
    pairs: int = 4096  # whose vectors are held at a time
    full_queries: int = 10_000  # of each pair set, at most: the cost is queries times candidates


def rank_pairs(
    pair_sets: Sequence[PairSet],
    vectors: VectorsOf,
    visible: VisibleNetwork,
    scorer: Callable[[Relation], Scorer],
    vector_rows: Mapping[NodeType, Ints] | None = None,
    read_alone: VectorsOf | None = None,
    processes: ProcessGroup | None = None,
    sizes: RankingSizes | None = None,
    link_weight: Callable[[Relation], float] | None = None,
) -> list[Ranks]:
    """The ranks of each pair set's keys. Of a type in ``vector_rows``, only those rows have vectors.

    ``read_alone`` gives vectors of text-rich nodes without their neighbours: if it is there, queries are
    ranked a second time by them. ``visible`` is what popularity is counted in. ``link_weight`` says how much
    of the log of a candidate's links a relation's scores lack; if they do, all are ranked with it, too.
    """
    network, ranks = visible.network, dict[int, Ranks]()
    for relation in dict.fromkeys(pair_set.relation for pair_set in pair_sets):
        chosen = [i for i, pair_set in enumerate(pair_sets) if pair_set.relation == relation]
        rows = (vector_rows or {}).get(relation.target)
        rows = np.arange(network.schema.counts[relation.target]) if rows is None else rows
        ranker = _Ranker(
            relation,
            vectors,
            visible,
            scorer(relation),
            rows,
            read_alone if relation.source in network.schema.text_rich else None,
            processes or ProcessGroup(),
            sizes or RankingSizes(),
            link_weight(relation) if link_weight else 0.0,
        )
        ranks |= zip(chosen, ranker.rank([pair_sets[i].pairs for i in chosen]), strict=True)
    return [ranks[i] for i in range(len(pair_sets))]


# By ranking of queries with neighbours, of each pair set; full ranks are those of its first pairs.
RanksOfSets = dict[Ranking, list[Tensor]]


@dataclass(frozen=True)
class _Ranker:
    """Ranks pairs of one relation among the nodes in ``rows`` of its target type."""

    relation: Relation
    vectors: VectorsOf
    visible: VisibleNetwork
    scorer: Scorer
    rows: Ints
    read_alone: VectorsOf | None
    processes: ProcessGroup
    sizes: RankingSizes
    link_weight: float = 0.0

    @property
    def network(self) -> Network:
        return self.visible.network

    def rank(self, pair_sets: Sequence[Pairs]) -> list[Ranks]:
        """With what chance and popularity give."""
        readings = [self.vectors, *([] if self.read_alone is None else [self.read_alone])]
        ranked = self._ranked(pair_sets, readings)
        popular = self._by_popularity(pair_sets)
        results = []
        for number, pairs in enumerate(pair_sets):
            first = pairs[: self.sizes.full_queries]
            excluded = _excluded_candidates(self.network, self.relation, first)
            among = candidate_counts(*excluded, len(first), self.rows)
            chance = chance_metrics(self._batch_candidates(pairs).numpy(), among)
            with_neighbors, *alone = ranked
            by_ranking = {ranking: ranks[number] for ranking, ranks in with_neighbors.items()}
            for of_queries in alone:
                by_ranking |= {ALONE_RANKINGS[name]: ranks[number] for name, ranks in of_queries.items()}
            popular_metrics = ranking_metrics({name: r[number].numpy() for name, r in popular.items()})
            results.append(
                Ranks(by_ranking, len(self.rows), chance, popular_metrics, popular["full"][number])
            )
        return results

    def _by_popularity(self, pair_sets: Sequence[Pairs]) -> RanksOfSets:
        """The same with a model that knows how many edges a key has, and nothing of the query."""
        scores = popularity(self.visible, self.relation)[:, None]  # (N, 1)
        by_edges = replace(
            self, vectors=lambda _, rows: scores[torch.from_numpy(rows)], scorer=_product, link_weight=0.0
        )
        (ranked,) = by_edges._ranked(pair_sets, [lambda _, rows: torch.ones(len(rows), 1).double()])
        return ranked

    def _batch_candidates(self, pairs: Pairs) -> Tensor:
        """(P,): among how many keys each query's own is ranked in its batch; ties put it last of them."""
        nothing = torch.zeros(len(pairs), 1)
        return self._in_batch(pairs, nothing, nothing, _product)

    def _in_batch(self, pairs: Pairs, queries: Tensor, keys: Tensor, scorer: Scorer) -> Tensor:
        """(P,) the ranks in batches of the paper's size."""
        # Predicted between texts it has the paper's plain form: other true keys of a query are ranked.
        schema = self.network.schema
        filtered = self.relation not in schema.predicted or schema.textless_end(self.relation) is not None
        excluded = _other_true_keys(self.network, self.relation, pairs) if filtered else None
        key_rows = torch.from_numpy(np.ascontiguousarray(pairs[:, 1]))
        size = self.network.schema.test_batch_size
        return in_batch_ranks(queries, keys, size, scorer, key_rows, excluded)

    def _ranked(self, pair_sets: Sequence[Pairs], readings: Sequence[VectorsOf]) -> list[RanksOfSets]:
        """For each of the ``readings`` of queries; keys and candidates have one, and are read once."""
        relation, most = self.relation, self.sizes.full_queries
        size = self.network.schema.test_batch_size
        in_batch: list[list[Tensor]] = [[] for _ in readings]  # by reading and pair set
        full_pairs, keys = list[Pairs](), list[Tensor]()
        queries: list[list[Tensor]] = [[] for _ in readings]
        for pairs in pair_sets:
            ranks: list[list[Tensor]] = [[] for _ in readings]
            for block in _slices(len(pairs), size * max(1, self.sizes.pairs // size)):  # whole batches
                kept = max(0, most - block.start)
                block_keys = self._gathered(self.vectors, relation.target, pairs[block, 1])
                full_pairs.append(pairs[block][:kept])
                keys.append(block_keys[:kept])
                for number, reading in enumerate(readings):
                    block_queries = self._gathered(reading, relation.source, pairs[block, 0])
                    ranks[number].append(self._in_batch(pairs[block], block_queries, block_keys, self.scorer))
                    queries[number].append(block_queries[:kept])
            for number, blocks in enumerate(ranks):
                in_batch[number].append(torch.cat(blocks))
        full = full_ranks(
            self.network,
            relation,
            np.concatenate(full_pairs * len(readings)),
            torch.cat([block for blocks in queries for block in blocks]),
            torch.cat(keys * len(readings)),
            _candidates(self.vectors, relation.target, self.rows, self.processes, self.sizes.candidates),
            self.scorer,
            self.rows,
            self.sizes.queries,
            self._links(),
        )
        # Each process has counted the better ones of its own candidates.
        full = 1 + self.processes.all_gather(full[None] - 1).sum(0).cpu()  # (1 or 2, R P)
        counts = [min(len(pairs), most) for pairs in pair_sets]
        names: tuple[Ranking, ...] = ("full", "full_with_links")
        results: list[RanksOfSets] = [{"in_batch": ranks} for ranks in in_batch]
        for name, every in zip(names, full, strict=False):
            for result, own_ranks in zip(results, every.chunk(len(readings)), strict=True):
                result[name] = list(torch.split(own_ranks, counts))
        return results

    def _links(self) -> Tensor | None:
        """(C,): what the candidates' links add to their scores, if they do."""
        if not self.link_weight:
            return None
        links = self.visible.log_links(self.relation.target, self.relation)
        return torch.from_numpy(self.link_weight * links[self.rows])

    def _gathered(self, vectors: VectorsOf, node_type: NodeType, rows: Ints) -> Tensor:
        """Vectors of all rows, of which each process computes a part."""
        own = vectors(node_type, rows[self.processes.share(len(rows))])
        return self.processes.all_gather(own).cpu()


def _candidates(
    vectors: VectorsOf, node_type: NodeType, rows: Ints, processes: ProcessGroup, size: int
) -> Iterator[tuple[int, Tensor]]:
    """The vectors of this process's candidates, some at a time, each with the number of its first."""
    with progress_bar(f"ranking all {node_type} nodes", len(rows), "nodes") as bar:
        parts = _slices(len(rows), size)
        for part in parts[processes.share(len(parts))]:
            yield part.start, vectors(node_type, rows[part])
            bar.advance(len(rows[part]) * processes.world_size)


def full_ranks(
    network: Network,
    relation: Relation,
    pairs: Pairs,
    queries: Tensor,
    keys: Tensor,
    candidates: Iterator[tuple[int, Tensor]],
    scorer: Scorer,
    rows: Ints | None = None,
    query_block: int = RankingSizes.queries,
    links: Tensor | None = None,
) -> Tensor:
    """(1, P) the rank of each key among all candidates but the query itself and the query's other true keys.

    Ties count against the model. Candidates come block by block, each once: all nodes of the type, or those
    of the ascending ``rows``. With ``links`` (C,), none below 0, (2, P): also by scores with these added.
    """
    blocks = _slices(len(pairs), query_block)
    own = torch.cat([_own_scores(queries[b], keys[b], scorer) for b in _slices(len(pairs), 256)])  # (P,)
    own = own[None]
    if links is not None:
        key = pairs[:, 1] if rows is None else np.searchsorted(rows, pairs[:, 1])
        own = torch.cat([own, own + (1 - ROUNDING) * links[torch.from_numpy(key)]])  # (2, P)
    ranks = torch.ones(own.shape, dtype=torch.int64)
    query_of, excluded = _excluded_candidates(network, relation, pairs)
    if rows is not None:
        has_vector = np.isin(excluded, rows)
        query_of, excluded = query_of[has_vector], np.searchsorted(rows, excluded[has_vector])
    for start, vectors in candidates:
        a, b = np.searchsorted(excluded, [start, start + len(vectors)])
        row, column = torch.from_numpy(query_of[a:b]), torch.from_numpy(excluded[a:b] - start)
        for block in blocks:
            mine = (row >= block.start) & (row < block.stop)
            scores = scorer(queries[block], vectors)  # (Q, C)
            for number in range(len(own)):
                if number and links is not None:
                    scores += links[start : start + len(vectors)]
                better = ~(scores < own[number, block, None])
                better[row[mine] - block.start, column[mine]] = False
                # Several times as fast as a sum of booleans in PyTorch.
                ranks[number, block] += torch.from_numpy(np.count_nonzero(better.numpy(), axis=1))
    return ranks


def _own_scores(queries: Tensor, keys: Tensor, scorer: Scorer) -> Tensor:
    """The scores of queries with their keys, less what products of other shapes may round otherwise.

    So equal vectors tie wherever they are met. A score can be small because large terms cancel out, and
    rounding is relative to the terms.
    """
    terms = scorer(queries.abs(), keys.abs()).diagonal()
    return scorer(queries, keys).diagonal() - ROUNDING * terms


def _product(queries: Tensor, keys: Tensor) -> Tensor:
    return queries @ keys.T


def _slices(count: int, size: int) -> list[slice]:
    return [slice(i, i + size) for i in range(0, count, size)]


def _other_true_keys(network: Network, relation: Relation, pairs: Pairs) -> ExcludedCandidates:
    """For a batch of the pairs, (b, b): which keys are also true of the query, or are the query itself."""
    adjacency = network.adjacency(relation.source, relation.target)
    number = network.schema.edge_types.index(relation.forward)

    def excluded(batch: slice) -> Tensor:
        queries, keys = pairs[batch].T
        combinations = np.repeat(queries, len(keys)), np.tile(keys, len(queries))
        true = adjacency.joined(*combinations, [number]).reshape(len(queries), len(keys))
        if relation.source == relation.target:
            true |= queries[:, None] == keys
        return torch.from_numpy(true)

    return excluded


def _excluded_candidates(network: Network, relation: Relation, pairs: Pairs) -> tuple[Ints, Ints]:
    """(query number, candidate row), sorted by candidate: what is not ranked against the query's key."""
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
