"""The rank of a query's key among candidates. Ties count against the model."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Scorer = Callable[[Tensor, Tensor], Tensor]  # (Q, d), (K, d) -> (Q, K)
ExcludedCandidates = Callable[[slice], Tensor]  # the pairs of a batch -> (b, b) bool


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
    key_rows: Tensor | None = None,
    excluded_candidates: ExcludedCandidates | None = None,
) -> Tensor:
    """(P,) the paper's in-batch ranks: each query's key among the keys of its batch of pairs.

    ``key_rows`` (P,) says which node each key is. A node that is the key of several pairs of a batch is one
    candidate: it would tie with itself, and ties count against the model. Without it all keys are different.
    ``excluded_candidates`` gives (b, b) for a batch of pairs: which keys a query's own is not ranked against.
    """
    each_batch = []
    for start in range(0, len(queries), batch_size):
        batch = slice(start, start + batch_size)
        scores = scorer(queries[batch], keys[batch])
        own = torch.arange(len(scores), device=scores.device)
        excluded = torch.zeros_like(scores, dtype=torch.bool)  # (b, b)
        if key_rows is not None:
            excluded |= _repeated_keys(key_rows[batch].to(scores.device))
        if excluded_candidates is not None:
            excluded |= excluded_candidates(batch)
        each_batch.append(ranks(scores, own, excluded))
    return torch.cat([torch.empty(0, dtype=torch.int64, device=queries.device), *each_batch])


def _repeated_keys(key_rows: Tensor) -> Tensor:
    """(b, b): for each query the other columns of its own key, and of each other key all but the first."""
    same = key_rows[:, None] == key_rows  # (b, b)
    is_first = same.int().argmax(1) == torch.arange(len(key_rows), device=key_rows.device)  # (b,)
    return same | ~is_first
