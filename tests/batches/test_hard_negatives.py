"""Mined negatives in batches: who they are, what they see, and for whom they are none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heterformer.batches.batch import PairBatch
from heterformer.batches.batcher import Batcher
from heterformer.batches.hard_negatives import HardNegatives, known_neighbors
from heterformer.batches.pairs import TrainingBatches
from heterformer.batches.slices import slices
from heterformer.batches.visible import VisibleNetwork
from heterformer.network.split.draw import make_split
from tests.batches.decoding import same
from tests.learning import tiny_network, tiny_tokens
from tests.networks import few


def tiny_batches(**more: object) -> TrainingBatches:
    split = make_split(tiny_network())
    batcher = Batcher(VisibleNetwork.for_training(tiny_network(), split), tiny_tokens())
    return TrainingBatches(batcher, split.train, 16, 0, **more)  # type: ignore[arg-type]


def some_negatives(made: TrainingBatches, count: int = 2, seed: int = 0) -> HardNegatives:
    queries = np.unique(made.pairs[:, 0])
    rng = np.random.default_rng(seed)
    rows = rng.integers(-1, 200, (len(queries), count))
    return HardNegatives(queries, rows)


def negative_rows(batch: PairBatch) -> list[int]:
    assert batch.text_rows is not None
    rows: list[int] = batch.text_rows[batch.centers[batch.negatives]].tolist()
    return rows


def edges(visible: VisibleNetwork) -> set[tuple[int, int]]:
    """All visible citations, found edge by edge."""
    view = visible.adjacency("paper", "paper")
    adjacency = view.adjacency
    gone = set(view.gone.tolist())
    numbers = [i for i, e in enumerate(visible.network.schema.edge_types) if e.relation.endswith("cites")]
    return {
        (center, int(adjacency.neighbor[entry]))
        for center in range(len(adjacency.indptr) - 1)
        for entry in range(adjacency.indptr[center], adjacency.indptr[center + 1])
        if entry not in gone and adjacency.edge_type[entry] in numbers
    }


def test_known_neighbours_are_the_visible_edges_either_way_and_the_query() -> None:
    visible = tiny_batches().batcher.visible
    queries = np.arange(0, 200, 3)
    place, nodes = known_neighbors(visible, queries)
    found = {(int(queries[p]), int(n)) for p, n in zip(place, nodes, strict=True)}
    expected = {(q, n) for q, n in edges(visible) if q % 3 == 0} | {(int(q), int(q)) for q in queries}
    assert found == expected


def test_a_held_out_edge_is_not_known() -> None:
    split = make_split(tiny_network())
    visible = VisibleNetwork.for_training(tiny_network(), split)
    for pairs in (split.held_out, split.held_out[:, ::-1]):
        queries = np.unique(pairs[:, 0])
        place, nodes = known_neighbors(visible, queries)
        known = {(int(queries[p]), int(n)) for p, n in zip(place, nodes, strict=True)}
        assert not known & {(int(q), int(k)) for q, k in pairs}


def test_a_step_has_the_negatives_of_its_queries_each_once_and_no_key() -> None:
    mined = HardNegatives(np.array([2, 5, 9]), np.array([[7, 8], [8, -1], [1, 3]]))
    assert mined.of_step(np.array([5, 2, 4]), np.array([7, 0, 6])).tolist() == [8]
    assert mined.of_step(np.array([9]), np.array([0])).tolist() == [1, 3]
    assert mined.of_step(np.array([10, 4]), np.array([0, 1])).tolist() == []
    nothing = HardNegatives(np.empty(0, dtype=np.int64), np.empty((0, 2), dtype=np.int64))
    assert nothing.of_step(np.array([9]), np.array([0])).tolist() == []


def test_the_mask_is_what_brute_force_finds() -> None:
    made = tiny_batches()
    mined = some_negatives(made)
    made.use(mined)
    joined = edges(made.batcher.visible)
    for step in range(made.steps_per_epoch):
        batch, (_, pairs) = made.batch(0, step), made.pairs_of_run_step(step)
        queries, keys = pairs.T
        negatives = mined.of_step(queries, keys)
        assert batch.text_rows is not None
        assert batch.text_rows[batch.centers[batch.negatives]].tolist() == negatives.tolist()
        columns = np.concatenate([keys, negatives])
        assert batch.false_negatives is not None
        assert batch.false_negatives.shape == (len(queries), len(columns))
        for i, query in enumerate(queries):
            for j, node in enumerate(columns):
                expected = j != i and (
                    node in (query, keys[i]) or (query, node) in joined or (node, query) in joined
                )
                assert bool(batch.false_negatives[i, j]) is bool(expected), (step, i, j)


def test_negatives_see_no_held_out_edge_and_pairs_still_do_not_see_each_other() -> None:
    made = tiny_batches()
    made.use(some_negatives(made))
    split = make_split(tiny_network())
    held_out = {(int(q), int(k)) for q, k in split.held_out} | {(int(k), int(q)) for q, k in split.held_out}
    for step in range(made.steps_per_epoch):
        batch, (_, pairs) = made.batch(0, step), made.pairs_of_run_step(step)
        assert batch.text_rows is not None
        rows = batch.text_rows[batch.centers].numpy()
        partner = np.concatenate([pairs[:, 1], pairs[:, 0], np.full(len(rows) - 2 * len(pairs), -1)])
        for edge_type, neighbors in batch.neighbors.items():
            if edge_type.neighbor != "paper":
                continue
            nodes = batch.text_rows[neighbors.node].numpy()
            centers = neighbors.center.numpy()
            assert not (nodes == partner[centers]).any()
            assert not {(int(rows[c]), int(n)) for c, n in zip(centers, nodes, strict=True)} & held_out


def test_queries_and_keys_are_as_without_negatives() -> None:
    plain, made = tiny_batches(neighbor_dropout=0.5), tiny_batches(neighbor_dropout=0.5)
    made.use(some_negatives(made))
    for step in range(3):
        one, other = plain.batch(0, step), made.batch(0, step)
        assert one.text_rows is not None
        assert other.text_rows is not None
        both = slice(0, 2 * one.pairs)
        assert one.text_rows[one.centers].tolist() == other.text_rows[other.centers[both]].tolist()
        assert one.false_negatives is not None
        assert other.false_negatives is not None
        assert one.false_negatives.tolist() == other.false_negatives[:, : one.pairs].tolist()
        for edge_type, neighbors in one.neighbors.items():
            found = other.neighbors[edge_type]
            mine = found.center < 2 * one.pairs
            assert neighbors.center.tolist() == found.center[mine].tolist()


@pytest.mark.parametrize("of", ["both", "queries"])
def test_negatives_lose_their_neighbours_as_keys_do(of: str) -> None:
    made = tiny_batches(neighbor_dropout=0.5, neighbor_dropout_of=of)
    made.use(some_negatives(made))
    with_some, all_negatives = 0, 0
    for step in range(made.steps_per_epoch):
        batch = made.batch(0, step)
        centers = np.unique(np.concatenate([n.center.numpy() for n in batch.neighbors.values()]))
        with_some += int((centers >= 2 * batch.pairs).sum())
        all_negatives += len(batch.centers) - 2 * batch.pairs
    share = with_some / all_negatives
    assert 0.3 < share < 0.7 if of == "both" else share > 0.95


@few
@given(st.integers(1, 4), st.integers(0, 3))
def test_processes_together_have_what_one_has(processes: int, step: int) -> None:
    whole = tiny_batches()
    whole.use(some_negatives(whole))
    batch = whole.batch(0, step)
    negatives: list[int] = []
    masks: list[list[bool]] = []
    for rank in range(processes):
        part = tiny_batches(share=(rank, processes))
        part.use(some_negatives(part))
        own = part.batch(0, step)
        assert own.text_rows is not None
        negatives += own.text_rows[own.centers[own.negatives]].tolist()
        assert own.false_negatives is not None
        masks += own.false_negatives.tolist()
    assert batch.text_rows is not None
    assert batch.false_negatives is not None
    assert negatives == batch.text_rows[batch.centers[batch.negatives]].tolist()
    assert masks == batch.false_negatives.tolist()


def test_slices_together_have_all_negatives() -> None:
    made = tiny_batches()
    made.use(some_negatives(made))
    batch = made.batch(0, 0)
    parts = slices(batch, 5)
    assert len(parts) == 4
    found = [row for part in parts for row in negative_rows(part)]
    assert found == negative_rows(batch)


def test_new_negatives_are_used_at_once() -> None:
    made = tiny_batches()
    made.use(some_negatives(made, seed=0))
    first = made.batch(0, 0)
    made.use(some_negatives(made, seed=1))
    assert not same(first, made.batch(0, 0))
    made.use(some_negatives(made, seed=0))
    assert same(first, made.batch(0, 0))
