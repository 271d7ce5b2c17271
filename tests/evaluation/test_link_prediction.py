from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from heterformer.arrays import Ints
from heterformer.batches.batch import Batch
from heterformer.batches.batcher import Batcher
from heterformer.batches.pairs import evaluation_sampler
from heterformer.batches.visible import VisibleNetwork
from heterformer.evaluation.link_prediction import LinkPrediction, PairSet, predicted_pairs
from heterformer.evaluation.pair_ranking import RankingSizes, full_ranks, rank_pairs
from heterformer.metrics import RANKING_METRICS
from heterformer.models.inference import center_vectors
from heterformer.network.schema import NodeType, Relation
from heterformer.network.split.draw import make_split
from heterformer.network.split.options import SplitOptions
from heterformer.network.split.pairs import Pairs
from heterformer.network.store import Network
from heterformer.network.tokens import open_tokens
from heterformer.training.validation import in_batch_metrics
from tests.evaluation.cheater import Cheater
from tests.evaluation.held_out_pairs import evaluate_link_prediction
from tests.learning import tiny_network, tiny_tokens
from tests.networks import Facts, edges_of, few, networks, pairs_of, split_of, tokenizer


def dot(queries: Tensor, keys: Tensor) -> Tensor:
    return queries @ keys.T


def in_blocks(vectors: Tensor, size: int) -> Iterator[tuple[int, Tensor]]:
    for start in range(0, len(vectors), size):
        yield start, vectors[start : start + size]


def true_pairs(network: Network, relation: Relation | None = None) -> Pairs:
    """Every edge of a relation, of the predicted one unless told."""
    source, target = network.edges((relation or network.schema.predicted[0]).name)
    return np.stack([source, target.astype(np.int64)], axis=1)


def ranked_candidates(network: Network, query: int, key: int, relation: Relation | None = None) -> list[int]:
    """By definition: all nodes of the key's type but the query, its other true keys and the key itself."""
    relation = relation or network.schema.predicted[0]
    (query_id,) = network.ids(relation.source, [query])
    known = {target for source, target in edges_of(network, relation.name) if source == query_id}
    if relation.source == relation.target:
        known.add(query_id)
    ids = network.ids(relation.target)
    return [row for row, i in enumerate(ids) if i not in known and row != key]


def ranks_by_definition(network: Network, pairs: Pairs, scores: Tensor) -> list[int]:
    """``scores`` are (pairs, candidates)."""
    return [
        1 + sum(not row[other] < row[key] for other in ranked_candidates(network, query, key))
        for (query, key), row in zip(pairs.tolist(), scores, strict=True)
    ]


def ranks_in_batch(pairs: Pairs, queries: Tensor, keys: Tensor) -> list[int]:
    """By definition, the pairs being one batch: among different keys."""
    scores = dict(zip(pairs[:, 1].tolist(), dot(keys, queries), strict=True))  # of each key, by query
    return [
        1 + sum(bool(row[i] >= scores[own][i]) for key, row in scores.items() if key != own)
        for i, own in enumerate(pairs[:, 1].tolist())
    ]


def found_ranks(
    network: Network,
    pairs: Pairs,
    queries: Tensor,
    nodes: Tensor,
    size: int = 4,
    query_block: int = 4096,
    links: Tensor | None = None,
) -> list[int]:
    """The last ranking: with links, if they are given."""
    keys, blocks = nodes[torch.from_numpy(pairs[:, 1])], in_blocks(nodes, size)
    relation = network.schema.predicted[0]
    every = full_ranks(
        network, relation, pairs, queries, keys, blocks, dot, query_block=query_block, links=links
    )
    return [int(rank) for rank in every[-1]]


@few
@given(
    networks(), st.integers(1, 13), st.integers(1, 13), st.integers(0, 2**32), st.sampled_from([1, 3, 999])
)
def test_full_ranks_are_those_of_the_definition(
    facts: Facts, candidates: int, queries_at_once: int, seed: int, values: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    with facts.built() as network:
        pairs = true_pairs(network)
        count = network.schema.counts[network.schema.predicted[0].target]
        nodes = torch.randint(-values, values + 1, (count, 2), generator=generator).float()
        queries = torch.randint(-values, values + 1, (len(pairs), 2), generator=generator).float()
        expected = ranks_by_definition(network, pairs, dot(queries, nodes))
        assert found_ranks(network, pairs, queries, nodes, candidates, queries_at_once) == expected
        added = torch.randint(0, values + 1, (count,), generator=generator).float()
        expected = ranks_by_definition(network, pairs, dot(queries, nodes) + added)
        found = found_ranks(network, pairs, queries, nodes, candidates, queries_at_once, added)
        assert found == expected


@pytest.fixture(scope="module")
def pairs() -> Pairs:
    return make_split(tiny_network()).test


def random_vectors(count: int, seed: int = 0) -> Tensor:
    return torch.randn(count, 16, generator=torch.Generator().manual_seed(seed))


def test_a_perfect_model_is_always_first(pairs: Pairs) -> None:
    nodes = torch.eye(200)
    assert set(found_ranks(tiny_network(), pairs, nodes[pairs[:, 1]], nodes)) == {1}


def test_other_true_keys_do_not_push_the_key_down(pairs: Pairs) -> None:
    nodes, asked = torch.eye(200), torch.zeros(len(pairs), 200)
    source, target = tiny_network().edges("cites")
    for row, query in enumerate(pairs[:, 0]):
        asked[row, target[source == query]] = 2.0  # the others score higher than the key
    asked[torch.arange(len(pairs)), pairs[:, 1]] = 1.0
    assert (asked == 2).any(1).sum() > 10
    assert set(found_ranks(tiny_network(), pairs, asked, nodes)) == {1}


def test_the_query_itself_does_not_push_the_key_down(pairs: Pairs) -> None:
    nodes = torch.eye(200)
    asked = nodes[pairs[:, 1]] + 2 * nodes[pairs[:, 0]]
    assert set(found_ranks(tiny_network(), pairs, asked, nodes)) == {1}


def test_a_citing_paper_is_a_candidate(pairs: Pairs) -> None:
    """Only what the query cites is a true key; who cites the query is ranked."""
    nodes, source_target = torch.eye(200), tiny_network().edges("cites")
    asked = nodes[pairs[:, 1]].clone()
    citing = [source_target[0][source_target[1] == query] for query in pairs[:, 0]]
    for row, papers in enumerate(citing):
        asked[row, papers] = 2.0
    assert found_ranks(tiny_network(), pairs, asked, nodes) == [1 + len(papers) for papers in citing]
    assert max(map(len, citing)) > 1


@pytest.mark.parametrize("kind", ["the same vector", "zeros", "not a number"])
def test_a_model_that_knows_nothing_is_ranked_last(pairs: Pairs, kind: str) -> None:
    nodes = random_vectors(1, 1).repeat(200, 1)
    queries = random_vectors(len(pairs))
    if kind != "the same vector":
        nodes = torch.zeros_like(nodes) if kind == "zeros" else torch.full_like(nodes, float("nan"))
    worst = [1 + len(ranked_candidates(tiny_network(), *pair)) for pair in pairs.tolist()]
    for size in (1, 7, 200):
        assert found_ranks(tiny_network(), pairs, queries, nodes, size) == worst


def test_blocks_of_any_size_give_the_same_ranks(pairs: Pairs) -> None:
    nodes, queries = random_vectors(200, 1), random_vectors(len(pairs))
    found = [found_ranks(tiny_network(), pairs, queries, nodes, size) for size in (1, 3, 199, 200, 4096)]
    assert all(ranks == found[0] for ranks in found)
    assert found[0] == ranks_by_definition(tiny_network(), pairs, dot(queries, nodes))


@few
@given(networks(), st.integers(0, 2**32), st.booleans())
def test_any_relation_is_ranked_among_the_targets_that_have_vectors(
    facts: Facts, seed: int, some_are_missing: bool
) -> None:
    rng = np.random.default_rng(seed)
    with facts.built() as network:
        counts = network.schema.counts
        matrices = {t: torch.from_numpy(rng.integers(-3, 4, (n, 3))).float() for t, n in counts.items()}
        every = {t: np.arange(n) for t, n in counts.items()}
        known = {t: rows[rng.random(len(rows)) < 0.7] for t, rows in every.items()}
        known = known if some_are_missing else every
        pair_sets = []
        for relation in network.schema.relations:
            pairs = true_pairs(network, relation)
            pairs = pairs[
                np.isin(pairs[:, 0], known[relation.source]) & np.isin(pairs[:, 1], known[relation.target])
            ]
            pair_sets += [PairSet("test", relation, pairs)] if len(pairs) else []

        def vectors(node_type: NodeType, rows: Ints) -> Tensor:
            assert set(rows.tolist()) <= set(known[node_type].tolist())
            return matrices[node_type][torch.from_numpy(rows)]

        visible = VisibleNetwork.whole(network)
        found = rank_pairs(pair_sets, vectors, visible, lambda _: dot, known if some_are_missing else None)
        for pair_set, ranks in zip(pair_sets, found, strict=True):
            relation, pairs = pair_set.relation, pair_set.pairs
            scores = dot(matrices[relation.source][pairs[:, 0]], matrices[relation.target])
            expected = [
                1
                + sum(
                    not row[other] < row[key]
                    for other in ranked_candidates(network, query, key, relation)
                    if other in known[relation.target]
                )
                for (query, key), row in zip(pairs.tolist(), scores, strict=True)
            ]
            assert ranks.full.tolist() == expected
            assert ranks.candidates == len(known[relation.target])


# --- The whole evaluation ---------------------------------------------------------------------------------


class WholeNumbers(Cheater):
    """A model whose vectors are whole numbers, so that scores are exact and many are equal."""

    def __init__(self, network: Network) -> None:
        super().__init__(network)
        self.width = 6

    def forward(self, batch: Batch, states: Tensor) -> Tensor:
        assert batch.text_rows is not None
        generator = torch.Generator().manual_seed(0)
        vectors = torch.randint(-3, 4, (self.texts, self.width), generator=generator).float()
        return vectors[batch.text_rows[batch.centers]]

    def scores(self, queries: Tensor, keys: Tensor, relation: str | None = None) -> Tensor:
        return queries @ keys.T


@pytest.fixture(scope="module")
def batcher() -> Batcher:
    return Batcher(VisibleNetwork.for_evaluation(tiny_network(), make_split(tiny_network())), tiny_tokens())


@pytest.fixture(scope="module")
def parts() -> dict[str, Pairs]:
    split = make_split(tiny_network())
    return {"validation": split.validation, "test": split.test}


def evaluated(
    batcher: Batcher, parts: dict[str, Pairs], sizes: RankingSizes | None = None
) -> list[LinkPrediction]:
    pair_sets = predicted_pairs(tiny_network(), parts)
    return evaluate_link_prediction(WholeNumbers(tiny_network()), batcher, pair_sets, seed=0, sizes=sizes)


def vectors_of(batcher: Batcher) -> Tensor:
    return center_vectors(
        WholeNumbers(tiny_network()), batcher, "paper", np.arange(200), evaluation_sampler(0)
    )


def test_the_figures_are_those_of_the_vectors(batcher: Batcher, parts: dict[str, Pairs]) -> None:
    vectors = vectors_of(batcher)
    for result, (part, pairs) in zip(evaluated(batcher, parts), parts.items(), strict=True):
        queries, keys = vectors[pairs[:, 0]], vectors[pairs[:, 1]]
        ranks = torch.tensor(ranks_by_definition(tiny_network(), pairs, dot(queries, vectors))).double()
        assert (result.part, result.pairs, result.batch_size) == (part, len(pairs), 100)
        assert (result.full_queries, result.candidates) == (len(pairs), 200)
        assert result.metrics["full_mrr"] == pytest.approx((1 / ranks).mean().item())
        hits = {k: (ranks <= k).double().mean().item() for k in (1, 10, 100)}
        assert {k: result.metrics[f"hits_{k}"] for k in hits} == pytest.approx(hits)
        better = torch.tensor(ranks_in_batch(pairs, queries, keys)).double()  # fewer than 100: one batch
        assert result.metrics["prec"] == pytest.approx((better == 1).double().mean().item())
        assert result.metrics["mrr"] == pytest.approx((1 / better).mean().item())


def test_a_part_has_the_same_figures_alone(batcher: Batcher, parts: dict[str, Pairs]) -> None:
    assert evaluated(batcher, {"test": parts["test"]}) == evaluated(batcher, parts)[1:]


@pytest.mark.parametrize("candidates", [1, 64, 10_000])
def test_the_figures_do_not_depend_on_the_memory_used(
    batcher: Batcher, parts: dict[str, Pairs], candidates: int
) -> None:
    sizes = RankingSizes(candidates=candidates, queries=1 + candidates // 2)
    assert evaluated(batcher, parts, sizes) == evaluated(batcher, parts)


def test_only_so_many_queries_are_ranked_in_full(batcher: Batcher, parts: dict[str, Pairs]) -> None:
    vectors, sizes = vectors_of(batcher), RankingSizes(full_queries=5)
    for result, pairs in zip(evaluated(batcher, parts, sizes), parts.values(), strict=True):
        assert (result.pairs, result.full_queries) == (len(pairs), 5)
        ranks = ranks_by_definition(tiny_network(), pairs[:5], dot(vectors[pairs[:5, 0]], vectors))
        assert result.metrics["full_mrr"] == pytest.approx(np.mean([1 / rank for rank in ranks]))


@pytest.mark.parametrize("size", [2, 7, 33])
def test_batches_have_the_test_batch_size_of_the_network(parts: dict[str, Pairs], size: int) -> None:
    network = copy(tiny_network())
    network.schema = replace(network.schema, test_batch_size=size)
    batcher = Batcher(VisibleNetwork.for_evaluation(network, make_split(network)), tiny_tokens())
    model, vectors, pairs = WholeNumbers(network), vectors_of(batcher), parts["test"]
    (result,) = evaluate_link_prediction(
        model, batcher, predicted_pairs(network, {"test": pairs}), 0, sizes=RankingSizes(pairs=3)
    )
    ranks = []
    for start in range(0, len(pairs), size):
        batch = pairs[start : start + size]
        ranks += ranks_in_batch(batch, vectors[batch[:, 0]], vectors[batch[:, 1]])
    assert result.batch_size == size
    assert result.metrics["mrr"] == pytest.approx(np.mean(1 / np.array(ranks)))
    assert in_batch_metrics(model, batcher, pairs, size, 0)["mrr"] == pytest.approx(result.metrics["mrr"])


# --- Queries read alone -----------------------------------------------------------------------------------


class KeysCheat(Cheater):
    """A key scores 1 with each query that it is shown as a neighbour."""

    def scores(self, queries: Tensor, keys: Tensor, relation: str | None = None) -> Tensor:
        own, _ = queries.chunk(2, 1)
        _, shown = keys.chunk(2, 1)
        return own @ shown.T


def shown() -> Batcher:
    """A batcher that hides nothing."""
    fan_out = {"paper": 99, "author": 3, "venue": 1}
    return Batcher(VisibleNetwork.whole(tiny_network()), tiny_tokens(), fan_out)


def test_a_query_read_alone_has_no_neighbours_and_keys_have_theirs() -> None:
    pair_sets = predicted_pairs(tiny_network(), {"test": make_split(tiny_network()).test})
    (by_query,) = evaluate_link_prediction(Cheater(tiny_network()), shown(), pair_sets, seed=0)
    assert by_query.metrics["hits_10"] > 0.5
    assert by_query.metrics["alone_hits_10"] == by_query.metrics["alone_prec"] == 0
    (by_key,) = evaluate_link_prediction(KeysCheat(tiny_network()), shown(), pair_sets, seed=0)
    assert by_key.metrics["hits_10"] > 0.5
    for metric in RANKING_METRICS:
        assert by_key.metrics[f"alone_{metric.name}"] == by_key.metrics[metric.name]


def test_each_node_is_read_once_and_queries_once_more_alone(
    batcher: Batcher, parts: dict[str, Pairs]
) -> None:
    read: list[int] = []

    class Counting(WholeNumbers):
        def forward(self, batch: Batch, states: Tensor) -> Tensor:
            read.append(len(batch.centers))
            return super().forward(batch, states)

    pair_sets, pairs = predicted_pairs(tiny_network(), parts), sum(map(len, parts.values()))
    evaluate_link_prediction(Counting(tiny_network()), batcher, pair_sets, seed=0)
    assert sum(read) == pairs + 200  # queries alone, and every node once, whichever roles it has


# --- With the links of candidates ---------------------------------------------------------------------------


def visible_links() -> Tensor:
    """Of each paper: how often it is cited, held-out pairs left out."""
    hidden = set(map(tuple, make_split(tiny_network()).held_out.tolist()))
    edges = [edge for edge in true_pairs(tiny_network()).tolist() if tuple(edge) not in hidden]
    return torch.from_numpy(np.bincount([target for _, target in edges], minlength=200))


@pytest.mark.parametrize("weight", [1.0, 0.5])
def test_links_of_candidates_are_added_to_their_scores(
    batcher: Batcher, parts: dict[str, Pairs], weight: float
) -> None:
    model, vectors, pairs = WholeNumbers(tiny_network()), vectors_of(batcher), parts["test"]
    pair_sets = predicted_pairs(tiny_network(), {"test": pairs})
    (plain,) = evaluate_link_prediction(model, batcher, pair_sets, 0)
    (result,) = evaluate_link_prediction(model, batcher, pair_sets, 0, link_weight=lambda _: weight)
    scores = dot(vectors[pairs[:, 0]], vectors) + weight * torch.log(1 + visible_links())
    ranks = np.array(ranks_by_definition(tiny_network(), pairs, scores))
    assert result.metrics["full_mrr_with_links"] == pytest.approx(np.mean(1 / ranks))
    assert result.metrics["hits_10_with_links"] == pytest.approx(np.mean(ranks <= 10))
    assert result.metrics["full_mrr_with_links"] != pytest.approx(result.metrics["full_mrr"])
    assert {name: result.metrics[name] for name in plain.metrics} == plain.metrics


def test_links_of_candidates_are_added_for_queries_read_alone(
    batcher: Batcher, parts: dict[str, Pairs]
) -> None:
    """Queries that are told nothing have keys in the order of their links."""

    class Blank(WholeNumbers):
        def scores(self, queries: Tensor, keys: Tensor, relation: str | None = None) -> Tensor:
            return torch.zeros(len(queries), len(keys))

    pair_sets = predicted_pairs(tiny_network(), {"test": parts["test"]})
    model = Blank(tiny_network())
    (result,) = evaluate_link_prediction(model, batcher, pair_sets, 0, link_weight=lambda _: 1.0)
    links = visible_links().expand(len(parts["test"]), -1)
    ranks = np.array(ranks_by_definition(tiny_network(), parts["test"], links))
    for name in ("full_mrr_with_links", "alone_full_mrr_with_links"):
        assert result.metrics[name] == pytest.approx(np.mean(1 / ranks))


# --- What knows nothing of the query ----------------------------------------------------------------------


def test_popularity_ranks_keys_by_their_visible_edges(batcher: Batcher, parts: dict[str, Pairs]) -> None:
    split = make_split(tiny_network())
    hidden = set(map(tuple, split.held_out.tolist()))
    edges = [edge for edge in true_pairs(tiny_network()).tolist() if tuple(edge) not in hidden]
    count = np.bincount([target for _, target in edges], minlength=200)
    (result,) = evaluated(batcher, {"test": parts["test"]})
    ahead, level = [], []
    for query, key in parts["test"].tolist():
        others = count[ranked_candidates(tiny_network(), query, key)]
        ahead.append((others > count[key]).sum())
        level.append((others == count[key]).sum())
    best, worst = 1 / (1 + np.array(ahead)), 1 / (1 + np.array(ahead) + np.array(level))
    assert worst.mean() < result.popularity["full_mrr"] < best.mean()


def test_chance_is_the_mean_over_all_ranks(batcher: Batcher, parts: dict[str, Pairs]) -> None:
    (result,) = evaluated(batcher, {"test": parts["test"]})
    keys = len(np.unique(parts["test"][:, 1]))
    assert keys < len(parts["test"])
    assert result.chance["prec"] == pytest.approx(1 / keys)
    assert result.chance["mrr"] == pytest.approx(np.mean(1 / np.arange(1, keys + 1)))
    among = [1 + len(ranked_candidates(tiny_network(), *pair)) for pair in parts["test"].tolist()]
    assert result.chance["hits_10"] == pytest.approx(np.mean([min(1, 10 / n) for n in among]))


# --- Leaks ------------------------------------------------------------------------------------------------


@few
@given(networks())
def test_who_reads_the_neighbours_finds_no_held_out_pair(facts: Facts) -> None:
    everything = dict.fromkeys(facts.fan_out, 99)  # whoever can be shown is shown
    with replace(facts, fan_out=everything).built() as network:
        split = split_of(network, SplitOptions(train=0.4, validation=0.3))
        tokens, cheater = open_tokens(network, tokenizer()), Cheater(network)
        parts = {"validation": split.validation, "test": split.test}
        honest = Batcher(VisibleNetwork.for_evaluation(network, split), tokens)
        for result in evaluate_link_prediction(cheater, honest, predicted_pairs(network, parts), seed=0):
            pairs = parts[result.part]
            worst = [1 / (1 + len(ranked_candidates(network, *pair))) for pair in pairs.tolist()]
            assert result.metrics["full_mrr"] == pytest.approx(np.mean(worst)), pairs_of(network, pairs)
            assert result.metrics["mrr"] == pytest.approx(1 / len(np.unique(pairs[:, 1])))
            validation = in_batch_metrics(cheater, honest, pairs, 100, seed=0)
            assert validation == {name: result.metrics[name] for name in ("prec", "mrr", "ndcg")}
            assert result.chance["prec"] == pytest.approx(1 / len(np.unique(pairs[:, 1])))


def test_who_reads_the_neighbours_finds_pairs_that_are_not_hidden() -> None:
    """The cheater is able to cheat: without which the test above could not fail."""
    split = make_split(tiny_network())
    pair_sets = predicted_pairs(tiny_network(), {"test": split.test})
    (result,) = evaluate_link_prediction(Cheater(tiny_network()), shown(), pair_sets, seed=0)
    assert result.metrics["hits_10"] > 0.5
    assert result.metrics["mrr"] > 10 / len(split.test)
