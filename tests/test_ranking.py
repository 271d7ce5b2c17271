from __future__ import annotations

import math

import torch
from hypothesis import given
from hypothesis import strategies as st

from heterformer.ranking import in_batch_ranks, ranks
from tests.networks import few

NAN = float("nan")


def dot(queries: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
    return queries @ keys.T


def rank(scores: list[float], key: int) -> int:
    return int(ranks(torch.tensor([scores]), torch.tensor([key])))


def test_the_best_score_is_rank_one() -> None:
    scores = torch.tensor([[3.0, 1.0, 2.0], [3.0, 1.0, 2.0], [3.0, 1.0, 2.0]])
    assert ranks(scores, torch.tensor([0, 1, 2])).tolist() == [1, 3, 2]


def test_a_tie_counts_against_the_model() -> None:
    assert rank([1.0, 1.0, 0.0], key=0) == 2
    assert rank([1.0, 1.0, 0.0], key=1) == 2
    assert rank([7.0, 7.0, 7.0, 7.0], key=2) == 4


def test_a_score_that_is_not_a_number_counts_against_the_model() -> None:
    assert rank([NAN, 5.0, 1.0], key=0) == 3
    assert rank([5.0, NAN, 1.0], key=0) == 2
    assert rank([NAN, NAN], key=1) == 2


def test_who_is_no_rival_is_not_ranked_before_the_key() -> None:
    scores = torch.tensor([[1.0, 2.0, NAN, 1.0, 3.0]]).repeat(2, 1)
    left_out = torch.tensor([[True, True, True, False, False], [False] * 5])
    assert ranks(scores, torch.tensor([0, 0]), left_out).tolist() == [3, 5]
    repeated = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    same = (repeated @ repeated.T).bool()
    assert in_batch_ranks(repeated, repeated, 3, dot).tolist() == [2, 2, 1]
    found = in_batch_ranks(repeated, repeated, 3, dot, excluded_candidates=lambda batch: same[batch, batch])
    assert found.tolist() == [1, 1, 1]


def test_infinite_scores() -> None:
    assert rank([math.inf, 1.0], key=0) == 1
    assert rank([-math.inf, 1.0], key=0) == 2
    assert rank([math.inf, math.inf], key=0) == 2


@few
@given(st.integers(1, 9), st.integers(0, 2**32))
def test_ranks_by_counting(size: int, seed: int) -> None:
    scores = torch.randint(0, 4, (size, size), generator=torch.Generator().manual_seed(seed)).float()
    expected = [
        1 + sum(other >= row[i] for j, other in enumerate(row) if j != i) for i, row in enumerate(scores)
    ]
    assert ranks(scores, torch.arange(size)).tolist() == expected


def test_a_query_ranks_the_keys_of_its_own_batch() -> None:
    queries = torch.eye(5)
    keys = torch.eye(5)
    keys[1], keys[2] = 2 * torch.eye(5)[0], 3 * torch.eye(5)[0]  # both please query 0 better than its own
    assert in_batch_ranks(queries, keys, 5, dot).tolist() == [3, 5, 5, 1, 1]
    assert in_batch_ranks(queries, keys, 2, dot).tolist() == [2, 2, 2, 1, 1]  # key 2 is of the next batch
    assert in_batch_ranks(queries, keys, 1, dot).tolist() == [1, 1, 1, 1, 1]


def test_every_pair_is_ranked_though_the_last_batch_is_short() -> None:
    vectors = torch.randn(7, 4, generator=torch.Generator().manual_seed(0))
    found = in_batch_ranks(vectors, vectors, 3, dot)
    apart = [in_batch_ranks(part, part, 3, dot) for part in vectors.split(3)]
    assert found.tolist() == torch.cat(apart).tolist()


def test_keys_that_are_all_the_same_are_ranked_last() -> None:
    generator = torch.Generator().manual_seed(1)
    queries, key = torch.randn(37, 48, generator=generator), torch.randn(1, 48, generator=generator)
    assert (in_batch_ranks(queries, key.repeat(37, 1), 37, dot) == 37).all()


def test_a_key_that_occurs_twice_in_a_batch_is_one_candidate() -> None:
    """No query is lost to the twin of its own key, and a better key counts once however often it occurs."""
    rows = torch.tensor([7, 7, 2, 2, 5])
    keys = torch.eye(8)[rows]
    queries = keys.clone()
    queries[4] = 2 * torch.eye(8)[2] + torch.eye(8)[5]  # prefers key 2, which occurs twice
    assert in_batch_ranks(queries, keys, 5, dot).tolist() == [2, 2, 2, 2, 3]
    assert in_batch_ranks(queries, keys, 5, dot, rows).tolist() == [1, 1, 1, 1, 2]
    assert in_batch_ranks(queries, keys, 3, dot, rows).tolist() == [1, 1, 1, 1, 2]
    nothing = torch.zeros_like(keys)
    assert in_batch_ranks(nothing, nothing, 5, dot, rows).tolist() == [3] * 5  # last of three keys


@few
@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 2**32))
def test_ranks_among_distinct_keys_by_counting(size: int, nodes: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randint(0, nodes, (size,), generator=generator)
    vectors = torch.randint(-2, 3, (nodes, 2), generator=generator).float()
    queries = torch.randint(-2, 3, (size, 2), generator=generator).float()
    scores = dot(queries, vectors)
    expected = [
        1 + sum(bool(scores[i, other] >= scores[i, own]) for other in set(rows.tolist()) - {own})
        for i, own in enumerate(rows.tolist())
    ]
    assert in_batch_ranks(queries, vectors[rows], size, dot, rows).tolist() == expected
