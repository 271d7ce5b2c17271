"""Link prediction: the paper's in-batch ranking, and the filtered ranking against all candidates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heterformer.arrays import Ints, ranges
from heterformer.batches.batcher import Batcher
from heterformer.batches.pairs import evaluation_sampler
from heterformer.batches.visible import VisibleNetwork
from heterformer.distributed import ProcessGroup
from heterformer.evaluation.reference import candidate_counts, popularity
from heterformer.evaluation.vector_cache import VectorCache, VectorsOf
from heterformer.metrics import (
    ALONE,
    QUERY_ALONE_METRICS,
    RANKING_METRICS,
    Ranking,
    RankingMetric,
    chance_metrics,
    no_better_than_chance,
    ranking_metrics,
)
from heterformer.models.contract import NodeEncoder
from heterformer.models.inference import StoredStates, center_vectors, evaluating
from heterformer.network.schema import NodeType, Relation, Schema
from heterformer.network.split.pairs import Pairs
from heterformer.network.store import Network
from heterformer.progress import progress_bar
from heterformer.ranking import ExcludedCandidates, Scorer, in_batch_ranks
from heterformer.states.text_states import stored_states

ROUNDING = 1e-6


@dataclass(frozen=True)
class RankingSizes:
    """How much is in memory at a time, and how many queries the full ranking takes."""

    candidates: int = 2048  # scored at a time
    queries: int = 4096  # scored at a time: with the candidates 32 MB
    pairs: int = 4096  # whose vectors are held at a time
    full_queries: int = 10_000  # of each pair set, at most: the cost is queries times candidates


@dataclass(frozen=True)
class LinkPrediction:
    """The metrics of the held-out pairs of one relation and part of the split."""

    relation: str
    part: str
    pairs: int
    batch_size: int
    """In the in-batch ranking, the key is ranked among the keys of so many pairs."""
    full_queries: int
    """In the full ranking, so many queries' keys are ranked."""
    candidates: int
    """They are ranked among so many nodes; the query's other true keys are left out."""
    metrics: dict[str, float]
    """By the names of ``heterformer.metrics.RANKING_METRICS`` and, if queries were read alone as well, of
    ``QUERY_ALONE_METRICS``. Keys are read with their neighbours in both."""
    chance: dict[str, float]
    """What guessing gives, by the names of ``RANKING_METRICS``."""
    popularity: dict[str, float]
    """What ranking keys by their number of visible edges gives, whatever the query."""

    @property
    def query_alone(self) -> bool:
        """Whether queries were read without their neighbours, too, as a search reads a text."""
        return QUERY_ALONE_METRICS[0].name in self.metrics

    @property
    def metric_table(self) -> tuple[RankingMetric, ...]:
        """The metrics that it has."""
        return (*RANKING_METRICS, *(QUERY_ALONE_METRICS if self.query_alone else ()))

    def chance_notes(self) -> list[str]:
        """A sentence for each reading of the queries whose PREC is no better than chance."""
        chance, metrics = self.chance["prec"], self.metrics
        readings = {"prec": self.part, f"{ALONE}prec": f"{self.part}, query alone"}
        return [
            f"{self.relation} ({words}): PREC {metrics[name]:.4f} is no better than chance ({chance:.4f})."
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
        metrics = (*RANKING_METRICS, *(QUERY_ALONE_METRICS if "query_alone" in values else ()))
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


@dataclass(frozen=True)
class Ranks:
    """The rank of each pair's key, which the metrics are means over."""

    in_batch: Tensor  # (P,)
    full: Tensor  # (P,), or of the first 10,000 pairs
    candidates: int
    chance: dict[str, float]
    popularity: dict[str, float]
    alone_in_batch: Tensor | None = None  # (P,), queries being read without neighbours
    alone_full: Tensor | None = None

    def arrays(self) -> dict[Ranking, NDArray[np.int64]]:
        """The ranks by ranking, as far as there are some."""
        tensors: dict[Ranking, Tensor | None] = {
            "in_batch": self.in_batch,
            "full": self.full,
            "alone_in_batch": self.alone_in_batch,
            "alone_full": self.alone_full,
        }
        return {ranking: ranks.numpy() for ranking, ranks in tensors.items() if ranks is not None}

    def result(self, pair_set: PairSet, schema: Schema) -> LinkPrediction:
        return LinkPrediction(
            relation=pair_set.relation.name,
            part=pair_set.part,
            pairs=len(self.in_batch),
            batch_size=schema.test_batch_size,
            full_queries=len(self.full),
            candidates=self.candidates,
            metrics=ranking_metrics(**self.arrays()),
            chance=self.chance,
            popularity=self.popularity,
        )


@dataclass(frozen=True)
class PairSet:
    """Held-out (query, key) pairs of one relation and part: which of all targets is each query's key?"""

    part: str
    relation: Relation
    pairs: Pairs


def predicted_pairs(network: Network, parts: Mapping[str, Pairs]) -> list[PairSet]:
    """The pairs of the predicted relation in some parts of a split."""
    return [PairSet(part, network.schema.predicted, pairs) for part, pairs in parts.items()]


def evaluate_link_prediction(
    model: NodeEncoder,
    batcher: Batcher,
    pair_sets: Sequence[PairSet],
    seed: int,
    folder: Path | None = None,
    processes: ProcessGroup | None = None,
    sizes: RankingSizes | None = None,
) -> list[LinkPrediction]:
    """Both rankings of the pairs. Memory depends neither on the number of candidates nor of pairs.

    Several processes share the work: each reads its part of the texts, pairs and candidates, and ranks all
    keys among its candidates. All have the metrics of the whole.
    """
    ranks = link_prediction_ranks(model, batcher, pair_sets, seed, folder, processes, sizes)
    return [r.result(pair_set, batcher.schema) for pair_set, r in zip(pair_sets, ranks, strict=True)]


def link_prediction_ranks(
    model: NodeEncoder,
    batcher: Batcher,
    pair_sets: Sequence[PairSet],
    seed: int,
    folder: Path | None = None,
    processes: ProcessGroup | None = None,
    sizes: RankingSizes | None = None,
) -> list[Ranks]:
    """The ranks of each pair set's keys, in the order of its pairs. Text states are kept in ``folder``."""
    with stored_states(model, batcher.tokens, folder, processes) as states:
        return rank_with_model(model, batcher, pair_sets, seed, states, processes, sizes)


def rank_with_model(
    model: NodeEncoder,
    batcher: Batcher,
    pair_sets: Sequence[PairSet],
    seed: int,
    states: StoredStates,
    processes: ProcessGroup | None = None,
    sizes: RankingSizes | None = None,
) -> list[Ranks]:
    """The same with text states that are stored already. The batcher must hide the pairs to be ranked.

    Every node is read once with its neighbours, whatever its roles, and queries once more alone.
    """
    sampler = evaluation_sampler(seed)
    bare = Batcher(batcher.visible, batcher.tokens, {})  # no neighbours at all

    def vectors(node_type: NodeType, rows: Ints) -> Tensor:
        if node_type in batcher.schema.text_rich:
            return center_vectors(model, batcher, node_type, rows, sampler, states)
        with evaluating(model), torch.autocast(model.device.type, enabled=False):  # as 'embed' makes them
            chosen = torch.from_numpy(rows.astype(np.int64)).to(model.device)
            return model.textless_vectors(node_type, chosen).float().cpu()

    def read_alone(node_type: NodeType, rows: Ints) -> Tensor:
        return center_vectors(model, bare, node_type, rows, sampler, states)

    def scores(queries: Tensor, keys: Tensor) -> Tensor:
        with torch.autocast("cpu", enabled=False):  # rounded scores would tie, and ties count against it
            return model.scores(queries, keys)

    kept = VectorCache(vectors, batcher.schema.counts)  # a node is query, key and candidate
    return rank_pairs(
        pair_sets, kept, batcher.visible, scores, read_alone=read_alone, processes=processes, sizes=sizes
    )


def rank_pairs(
    pair_sets: Sequence[PairSet],
    vectors: VectorsOf,
    visible: VisibleNetwork,
    scorer: Scorer,
    vector_rows: Mapping[NodeType, Ints] | None = None,
    read_alone: VectorsOf | None = None,
    processes: ProcessGroup | None = None,
    sizes: RankingSizes | None = None,
) -> list[Ranks]:
    """The ranks of each pair set's keys. Of a type in ``vector_rows``, only those rows have vectors.

    ``read_alone`` gives vectors of text-rich nodes without their neighbours: if it is there, queries are
    ranked a second time by them. ``visible`` is what popularity is counted in.
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
            scorer,
            rows,
            read_alone if relation.source in network.schema.text_rich else None,
            processes or ProcessGroup(),
            sizes or RankingSizes(),
        )
        ranks |= zip(chosen, ranker.rank([pair_sets[i].pairs for i in chosen]), strict=True)
    return [ranks[i] for i in range(len(pair_sets))]


class _Ranked(NamedTuple):
    """Of each pair set: the ranks in the batch, and in full of its first pairs."""

    in_batch: list[Tensor]
    full: list[Tensor]


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
            in_batch, full = (ranks[number].numpy() for ranks in popular)
            with_neighbors, *alone = ranked
            results.append(
                Ranks(
                    with_neighbors.in_batch[number],
                    with_neighbors.full[number],
                    len(self.rows),
                    chance,
                    ranking_metrics(in_batch, full),
                    alone[0].in_batch[number] if alone else None,
                    alone[0].full[number] if alone else None,
                )
            )
        return results

    def _by_popularity(self, pair_sets: Sequence[Pairs]) -> _Ranked:
        """The same with a model that knows how many edges a key has, and nothing of the query."""
        scores = popularity(self.visible, self.relation)[:, None]  # (N, 1)
        by_edges = replace(self, vectors=lambda _, rows: scores[torch.from_numpy(rows)], scorer=_product)
        (ranked,) = by_edges._ranked(pair_sets, [lambda _, rows: torch.ones(len(rows), 1).double()])
        return ranked

    def _batch_candidates(self, pairs: Pairs) -> Tensor:
        """(P,): among how many keys each query's own is ranked in its batch; ties put it last of them."""
        nothing = torch.zeros(len(pairs), 1)
        return self._in_batch(pairs, nothing, nothing, _product)

    def _in_batch(self, pairs: Pairs, queries: Tensor, keys: Tensor, scorer: Scorer) -> Tensor:
        """(P,) the ranks in batches of the paper's size."""
        # The predicted relation has the paper's plain form: other true keys of a query are ranked.
        filtered = self.relation != self.network.schema.predicted
        excluded = _other_true_keys(self.network, self.relation, pairs) if filtered else None
        key_rows = torch.from_numpy(np.ascontiguousarray(pairs[:, 1]))
        size = self.network.schema.test_batch_size
        return in_batch_ranks(queries, keys, size, scorer, key_rows, excluded)

    def _ranked(self, pair_sets: Sequence[Pairs], readings: Sequence[VectorsOf]) -> list[_Ranked]:
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
                    asked = self._gathered(reading, relation.source, pairs[block, 0])
                    ranks[number].append(self._in_batch(pairs[block], asked, block_keys, self.scorer))
                    queries[number].append(asked[:kept])
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
        )
        # Each process has counted the better ones of its own candidates.
        full = 1 + self.processes.all_gather(full[None] - 1).sum(0).cpu()
        counts = [min(len(pairs), most) for pairs in pair_sets]
        each = full.chunk(len(readings))
        return [_Ranked(b, list(torch.split(f, counts))) for b, f in zip(in_batch, each, strict=True)]

    def _gathered(self, vectors: VectorsOf, node_type: NodeType, rows: Ints) -> Tensor:
        """Vectors of all rows, of which each process computes a part."""
        own = vectors(node_type, rows[self.processes.share(len(rows))])
        return self.processes.all_gather(own).cpu()


def _candidates(
    vectors: VectorsOf, node_type: NodeType, rows: Ints, processes: ProcessGroup, size: int
) -> Iterator[tuple[int, Tensor]]:
    """The vectors of this process's candidates, some at a time, each with the number of its first."""
    with progress_bar(f"ranking all {node_type} nodes", len(rows)) as bar:
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
) -> Tensor:
    """(P,) the rank of each key among all candidates but the query itself and the query's other true keys.

    Ties count against the model. Candidates come block by block, each once: all nodes of the type, or those
    of the ascending ``rows``.
    """
    blocks = _slices(len(pairs), query_block)
    own = torch.cat([_own_scores(queries[b], keys[b], scorer) for b in _slices(len(pairs), 256)])  # (P,)
    ranks = torch.ones(len(pairs), dtype=torch.int64)
    query_of, excluded = _excluded_candidates(network, relation, pairs)
    if rows is not None:
        has_vector = np.isin(excluded, rows)
        query_of, excluded = query_of[has_vector], np.searchsorted(rows, excluded[has_vector])
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
