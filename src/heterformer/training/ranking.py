"""Ranking metrics of link prediction. Ties count against the model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

Scorer = Callable[[Tensor, Tensor], Tensor]  # (Q, d), (K, d) -> (Q, K)


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


def ranks(scores: Tensor, key: Tensor) -> Tensor:
    """(Q,) the rank, from 1, of the key at column ``key[q]`` among the row's scores.

    A candidate that scores the same as the key is ranked before it, and one that is not a number ranks
    the key last: no model gains by giving everything the same score.
    """
    own = scores.gather(1, key[:, None])  # (Q, 1)
    better = ~(scores < own)  # NaN compares false, so it counts as better
    better.scatter_(1, key[:, None], False)
    return better.sum(1) + 1


def in_batch_ranks(queries: Tensor, keys: Tensor, batch_size: int, scorer: Scorer) -> Tensor:
    """(P,) the paper's in-batch ranks: each query's key among the keys of its batch of pairs."""
    found = []
    for start in range(0, len(queries), batch_size):
        scores = scorer(queries[start : start + batch_size], keys[start : start + batch_size])
        found.append(ranks(scores, torch.arange(len(scores), device=scores.device)))
    return torch.cat([torch.empty(0, dtype=torch.int64, device=queries.device), *found])


def hits(found: Tensor, at: Sequence[int] = (1, 10, 100)) -> dict[int, float]:
    """The share of queries whose key is among the first 1, 10, 100."""
    return {k: (found <= k).double().mean().item() for k in at}
