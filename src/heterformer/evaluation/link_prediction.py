"""Link prediction: the paper's in-batch ranking, and the filtered ranking against all candidates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from heterformer.arrays import Ints, ranges
from heterformer.batches.batcher import Batcher
from heterformer.batches.pairs import evaluation_sampler
from heterformer.distributed import ProcessGroup
from heterformer.models.contract import NodeEncoder
from heterformer.models.inference import StoredStates, center_vectors, evaluating
from heterformer.network.schema import NodeType, Relation, Schema
from heterformer.network.split.pairs import Pairs
from heterformer.network.store import Network
from heterformer.progress import progress_bar
from heterformer.ranking import ExcludedCandidates, RankingMetrics, Scorer, hits, in_batch_ranks
from heterformer.states.text_states import stored_states

VectorsOf = Callable[[NodeType, Ints], Tensor]  # (n, d): of the nodes in some rows of a type
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
    """The figures of one question, such as a part of the split."""

    relation: str
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
    candidates: int

    def figures(self, question: Question, schema: Schema) -> LinkPrediction:
        reciprocal = (1 / self.full.double()).mean().item()
        return LinkPrediction(
            relation=question.relation.name,
            part=question.part,
            pairs=len(self.in_batch),
            batch_size=schema.test_batch_size,
            in_batch=RankingMetrics.of(self.in_batch),
            full=FullRanking(len(self.full), self.candidates, reciprocal, hits(self.full)),
        )


@dataclass(frozen=True)
class Question:
    """Pairs of a relation: which of all targets is the key of each query?"""

    part: str
    relation: Relation
    pairs: Pairs


def predicted_pairs(network: Network, parts: Mapping[str, Pairs]) -> list[Question]:
    """The parts of a split as questions."""
    return [Question(part, network.schema.predicted, pairs) for part, pairs in parts.items()]


def evaluate_link_prediction(
    model: NodeEncoder,
    batcher: Batcher,
    questions: Sequence[Question],
    seed: int,
    folder: Path | None = None,
    processes: ProcessGroup | None = None,
) -> list[LinkPrediction]:
    """Both rankings of the pairs. Memory depends neither on the number of candidates nor of pairs.

    Several processes share the work: each has the texts, the pairs and the candidates of its part to read,
    and ranks all keys among its candidates. All have the figures of the whole.
    """
    found = link_prediction_ranks(model, batcher, questions, seed, folder, processes)
    return [r.figures(q, batcher.schema) for q, r in zip(questions, found, strict=True)]


def link_prediction_ranks(
    model: NodeEncoder,
    batcher: Batcher,
    questions: Sequence[Question],
    seed: int,
    folder: Path | None = None,
    processes: ProcessGroup | None = None,
) -> list[Ranks]:
    """The ranks of each question's keys, in the order of its pairs. Texts' states are kept in ``folder``."""
    with stored_states(model, batcher.tokens, folder, processes) as states:
        return ranks_by_model(model, batcher, questions, seed, states, processes)


def ranks_by_model(
    model: NodeEncoder,
    batcher: Batcher,
    questions: Sequence[Question],
    seed: int,
    states: StoredStates,
    processes: ProcessGroup | None = None,
) -> list[Ranks]:
    """The same, texts' states being there. The batcher must not show the pairs that are asked for."""
    sampler = evaluation_sampler(seed)

    def vectors(node_type: NodeType, rows: Ints) -> Tensor:
        if node_type in batcher.schema.text_rich:
            return center_vectors(model, batcher, node_type, rows, sampler, states)
        with evaluating(model), torch.autocast(model.device.type, enabled=False):  # as 'embed' makes them
            chosen = torch.from_numpy(rows.astype(np.int64)).to(model.device)
            return model.textless_vectors(node_type, chosen).float().cpu()

    def scores(queries: Tensor, keys: Tensor) -> Tensor:
        with torch.autocast("cpu", enabled=False):  # rounded scores would tie, and ties count against it
            return model.scores(queries, keys)

    return ranks_of(questions, vectors, batcher.visible.network, scores, processes=processes)


def ranks_of(
    questions: Sequence[Question],
    vectors: VectorsOf,
    network: Network,
    scorer: Scorer,
    known: Mapping[NodeType, Ints] | None = None,
    processes: ProcessGroup | None = None,
) -> list[Ranks]:
    """The ranks of each question's keys. Of a type in ``known``, only those rows have vectors."""
    found: dict[int, Ranks] = {}
    for relation in dict.fromkeys(question.relation for question in questions):
        chosen = [i for i, question in enumerate(questions) if question.relation == relation]
        parts = [questions[i].pairs for i in chosen]
        rows = (known or {}).get(relation.target)
        rows = np.arange(network.schema.counts[relation.target]) if rows is None else rows
        several = processes or ProcessGroup()
        found |= zip(chosen, _ranks(relation, parts, vectors, network, scorer, rows, several), strict=True)
    return [found[i] for i in range(len(questions))]


def _ranks(
    relation: Relation,
    parts: list[Pairs],
    vectors: VectorsOf,
    network: Network,
    scorer: Scorer,
    rows: Ints,
    processes: ProcessGroup,
) -> list[Ranks]:
    def divided(node_type: NodeType, wanted: Ints) -> Tensor:
        return processes.all_gather(vectors(node_type, wanted[processes.share(len(wanted))])).cpu()

    size = network.schema.test_batch_size
    # The predicted relation has the paper's plain form. Of others, keys such as venues repeat in a batch.
    filtered = relation != network.schema.predicted
    in_batch: list[Tensor] = []
    asked, queries, keys = [], [], []
    for pairs in parts:
        ranks = []
        for block in _slices(len(pairs), size * max(1, PAIRS // size)):  # whole batches at a time
            ends = divided(relation.source, pairs[block, 0]), divided(relation.target, pairs[block, 1])
            excluded_candidates = _no_rivals(network, relation, pairs[block]) if filtered else None
            ranks.append(in_batch_ranks(*ends, size, scorer, excluded_candidates))
            if (kept := FULL_RANKING_QUERIES - block.start) > 0:
                asked.append(pairs[block][:kept])
                queries.append(ends[0][:kept])
                keys.append(ends[1][:kept])
        in_batch.append(torch.cat(ranks))
    both = torch.cat(queries), torch.cat(keys)
    candidates = _candidates(vectors, relation.target, rows, processes)
    full = full_ranks(network, relation, np.concatenate(asked), *both, candidates, scorer, rows)
    full = 1 + processes.all_gather(full[None] - 1).sum(0).cpu()  # each was beaten by candidates everywhere
    counts = [min(len(pairs), FULL_RANKING_QUERIES) for pairs in parts]
    return [Ranks(*both, len(rows)) for both in zip(in_batch, torch.split(full, counts), strict=True)]


def _candidates(
    vectors: VectorsOf, node_type: NodeType, rows: Ints, processes: ProcessGroup
) -> Iterator[tuple[int, Tensor]]:
    """The vectors of this process's candidates, some at a time, each with the number of its first."""
    with progress_bar(f"ranking all {node_type} nodes", len(rows)) as bar:
        parts = _slices(len(rows), CANDIDATES)
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
) -> Tensor:
    """(P,) the rank of each key among all candidates but the query itself and the query's other true keys.

    Ties count against the model. Candidates are met once, block by block; they are all nodes of the type or
    those of the ascending ``rows``.
    """
    blocks = _slices(len(pairs), QUERIES)
    own = torch.cat([_own_scores(queries[b], keys[b], scorer) for b in _slices(len(pairs), 256)])  # (P,)
    ranks = torch.ones(len(pairs), dtype=torch.int64)
    query_of, excluded = _excluded(network, relation, pairs)
    if rows is not None:
        there = np.isin(excluded, rows)
        query_of, excluded = query_of[there], np.searchsorted(rows, excluded[there])
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


def _no_rivals(network: Network, relation: Relation, pairs: Pairs) -> ExcludedCandidates:
    """(b, b) of a batch of the pairs: which keys are true of the query as well, or are the query itself."""
    adjacency = network.adjacency(relation.source, relation.target)
    number = network.schema.edge_types.index(relation.forward)

    def of(batch: slice) -> Tensor:
        queries, keys = pairs[batch].T
        each = np.repeat(queries, len(keys)), np.tile(keys, len(queries))
        known = adjacency.joined(*each, [number]).reshape(len(queries), len(keys))
        if relation.source == relation.target:
            known |= queries[:, None] == keys
        return torch.from_numpy(known)

    return of


def _excluded(network: Network, relation: Relation, pairs: Pairs) -> tuple[Ints, Ints]:
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
