"""A signature changes with whatever a vector is made of, and with nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from heterformer.batches.batch import Batch, Neighbors
from heterformer.batches.batcher import Batcher
from heterformer.batches.sampling import SeededSampler
from heterformer.batches.visible import VisibleNetwork
from heterformer.embedding.signatures import Signatures
from heterformer.network.hashes import Hashes
from heterformer.network.tokens import PackedTokens
from heterformer.training.unseen import FoldedIn
from tests.learning import tiny_model, tiny_network, tiny_tokens

ROWS, SAMPLER = np.arange(30), SeededSampler(np.uint64(1))


def batch_of(rows: np.ndarray[tuple[int], np.dtype[np.int64]] = ROWS) -> Batch:
    return Batcher(VisibleNetwork.whole(tiny_network()), tiny_tokens()).nodes("paper", rows, SAMPLER)


@pytest.fixture(scope="module")
def before() -> Hashes:
    return Signatures(tiny_model(), tiny_tokens()).for_batch(batch_of())


def centers_of(batch: Batch, kind: str) -> set[int]:
    """The centres that have a neighbour of a kind."""
    return {int(c) for r, edges in batch.neighbors.items() if r.neighbor == kind for c in edges.center}


def test_all_are_different(before: Hashes) -> None:
    assert len(set(before.tolist())) == len(ROWS)


def test_company_and_order_do_not_matter(before: Hashes) -> None:
    signatures = Signatures(tiny_model(), tiny_tokens())
    assert (signatures.for_batch(batch_of(ROWS[::-1].copy()))[::-1] == before).all()
    batch = batch_of()
    turned = {r: Neighbors(e.center.flip(0), e.node.flip(0)) for r, e in reversed(batch.neighbors.items())}
    assert (signatures.for_batch(replace(batch, neighbors=turned)) == before).all()


def test_a_word_changes_the_text_and_those_next_to_it(before: Hashes) -> None:
    tokens, batch = tiny_tokens(), batch_of()
    assert batch.text_rows is not None
    number = int(batch.text_rows[0])  # a neighbour's text, and perhaps a centre's
    changed = tokens.tokens.copy()
    changed[tokens.offsets[number] + 1] += 1
    other = PackedTokens(tokens.text_offset, tokens.offsets, changed)
    found = Signatures(tiny_model(), other).for_batch(batch)
    near = {
        int(c)
        for r, edges in batch.neighbors.items()
        if r.neighbor == "paper"
        for c, n in zip(edges.center, edges.node, strict=True)
        if batch.text_rows[n] == number
    }
    near |= {i for i, c in enumerate(batch.centers) if batch.text_rows[c] == number}
    assert {i for i in range(len(ROWS)) if found[i] != before[i]} == near
    assert near


def test_an_embedding_changes_those_next_to_it(before: Hashes) -> None:
    model, batch = tiny_model(), batch_of()
    table, _ = model.textless.parameters_of("venue")
    with torch.no_grad():
        table += 1
    found = Signatures(model, tiny_tokens()).for_batch(batch)
    assert {i for i in range(len(ROWS)) if found[i] != before[i]} == centers_of(batch, "venue")


def test_another_edge_type_to_the_same_neighbour_is_another_neighbourhood(before: Hashes) -> None:
    batch = batch_of()
    edge_types = [r for r in tiny_network().schema.edge_types if (r.center, r.neighbor) == ("paper", "paper")]
    first, second = (batch.neighbors[r] for r in edge_types)
    swapped = batch.neighbors | {edge_types[0]: second, edge_types[1]: first}
    found = Signatures(tiny_model(), tiny_tokens()).for_batch(replace(batch, neighbors=swapped))
    assert {i for i in range(len(ROWS)) if found[i] != before[i]} == centers_of(batch, "paper")


def test_a_folded_in_node_is_what_its_texts_make_it() -> None:
    texts = np.array([4, 9, 9, 17])
    new = FoldedIn(np.array([0, 5]), np.array([0, 0, 1, 1]), texts)
    model = tiny_model()
    once = Signatures(model, tiny_tokens(), {"author": new}).textless("author")
    table, _ = model.textless.parameters_of("author")
    with torch.no_grad():
        table[[0, 5]] *= 1.0001  # as rounding might
    again = Signatures(model, tiny_tokens(), {"author": new}).textless("author")
    assert (once == again).all()
    other = new._replace(texts=np.array([4, 9, 9, 18]))
    changed = Signatures(model, tiny_tokens(), {"author": other}).textless("author") != again
    assert np.flatnonzero(changed).tolist() == [5]
