"""Ranking metrics of link prediction. Ties count against the model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

Scorer = Callable[[Tensor, Tensor], Tensor]  # (Q, d), (K, d) -> (Q, K)
ExcludedCandidates = Callable[[slice], Tensor]  # the pairs of a batch -> (b, b) bool


@dataclass(frozen=True)
class RankingMetrics:
    """Means over queries."""

    prec: float
    """PREC@1: how often the key is ranked first."""
    mrr: float
    """Mean reciprocal rank."""
    ndcg: float
    """Normalised discounted cumulative gain over the full list: 1 / log2(1 + rank), for one relevant key."""

    @classmethod
    def of(cls, ranks: Tensor) -> RankingMetrics:
        ranks = ranks.double()
        return cls(
            prec=(ranks == 1).double().mean().item(),
            mrr=(1 / ranks).mean().item(),
            ndcg=(1 / torch.log2(1 + ranks)).mean().item(),
        )


def ranks(scores: Tensor, key: Tensor, excluded_candidates: Tensor | None = None) -> Tensor:
    """(Q,): the rank, from 1, of the key at column ``key[q]`` among the row's candidates.

    ``excluded_candidates`` (Q, K) marks those that do not count. A candidate that scores the same as the
    key is ranked before it, and one that is not a number ranks the key last: no model gains by giving
    everything the same score.
    """
    own = scores.gather(1, key[:, None])  # (Q, 1)
    better = ~(scores < own)  # NaN compares false, so it counts as better
    better.scatter_(1, key[:, None], False)
    if excluded_candidates is not None:
        better &= ~excluded_candidates  # (Q, K)
    return better.sum(1) + 1


def in_batch_ranks(
    queries: Tensor,
    keys: Tensor,
    batch_size: int,
    scorer: Scorer,
    excluded_candidates: ExcludedCandidates | None = None,
) -> Tensor:
    """(P,) the paper's in-batch ranks: each query's key among the keys of its batch of pairs.

    ``excluded_candidates`` gives (b, b) for a batch of pairs: which keys a query's own is not ranked against.
    """
    found = []
    for start in range(0, len(queries), batch_size):
        batch = slice(start, start + batch_size)
        scores = scorer(queries[batch], keys[batch])
        own = torch.arange(len(scores), device=scores.device)
        found.append(ranks(scores, own, None if excluded_candidates is None else excluded_candidates(batch)))
    return torch.cat([torch.empty(0, dtype=torch.int64, device=queries.device), *found])


def hits(found: Tensor, at: Sequence[int] = (1, 10, 100)) -> dict[int, float]:
    """The share of queries whose key is among the first 1, 10, 100."""
    return {k: (found <= k).double().mean().item() for k in at}
