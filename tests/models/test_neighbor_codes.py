"""Codes of neighbours: fixed, nearly orthogonal, and alike for nodes with the same neighbours."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from heterformer.batches.batch import Batch, Neighbors, Texts
from heterformer.models import Heterformer
from heterformer.models.neighbor_codes import START, NeighborCodes
from heterformer.network.schema import EdgeType
from tests.models.random_batches import random_batch, save_backbone, schema

CITES = EdgeType("paper", "cites", "paper")
WIDTH = 384


def texts(count: int) -> Texts:
    """Texts of two tokens each, all of them different."""
    return Texts(torch.arange(2 * count), 2 * torch.arange(count + 1))


def batch_of(neighbors: list[list[int]], count: int = 20) -> Batch:
    """Centres with the neighbours given, of ``count`` texts."""
    center = [i for i, nodes in enumerate(neighbors) for _ in nodes]
    node = [j for nodes in neighbors for j in nodes]
    edges = {CITES: Neighbors(torch.tensor(center, dtype=torch.int64), torch.tensor(node, dtype=torch.int64))}
    return Batch(texts(count), count, torch.arange(len(neighbors)), edges if center else {}, {})


def added(neighbors: list[list[int]]) -> Tensor:
    """What the codes add to vectors of length 1, by a gate of 1."""
    codes = NeighborCodes(WIDTH, {"paper"})
    torch.nn.init.ones_(codes.gate)
    vectors = torch.nn.functional.normalize(torch.ones(len(neighbors), WIDTH))
    change: Tensor = codes(batch_of(neighbors), vectors) - vectors
    return change.detach()


def test_codes_of_different_texts_are_nearly_orthogonal() -> None:
    codes = NeighborCodes(WIDTH, {"paper"}).codes(texts(300).content_hashes())
    products = codes @ codes.T
    torch.testing.assert_close(products.diag(), torch.ones(300))
    others = products[~torch.eye(300, dtype=torch.bool)]
    assert others.abs().max() < 0.35
    assert float(others.std()) == pytest.approx(WIDTH**-0.5, rel=0.05)


def test_a_code_is_a_matter_of_the_text_alone() -> None:
    codes, some = NeighborCodes(WIDTH, {"paper"}), texts(9)
    chosen = torch.tensor([7, 2])
    expected = codes.codes(some.content_hashes())[chosen]
    assert torch.equal(codes.codes(some.select(chosen).content_hashes()), expected)


def test_products_say_how_many_neighbors_two_nodes_share() -> None:
    change = added([[4, 5, 6, 7], [4, 5, 6, 7], [4, 5, 8, 9], [10, 11, 12, 13], [4]])
    products = change @ change[0]
    assert float(products[0]) == pytest.approx(4 / 5, abs=0.05)
    assert float(products[1]) == pytest.approx(4 / 5, abs=0.05)
    assert float(products[2]) == pytest.approx(2 / 5, abs=0.15)
    assert float(products[3]) == pytest.approx(0, abs=0.15)
    assert float(change[4] @ change[4]) == pytest.approx(1 / 2, abs=1e-5)  # of a single neighbour


def test_a_node_without_neighbors_keeps_its_vector() -> None:
    change = added([[], [3, 4]])
    assert not change[0].any()
    assert change[1].any()
    assert not added([[], []]).any()


def test_many_neighbours_of_one_text_add_no_more_than_the_gate() -> None:
    batch = batch_of([[*range(20)]])  # such as nodes without text
    batch = replace(batch, texts=replace(batch.texts, tokens=torch.ones_like(batch.texts.tokens)))
    codes, vectors = NeighborCodes(WIDTH, {"paper"}), torch.eye(1, WIDTH)
    assert 0.99 * START < float((codes(batch, vectors) - vectors).detach().norm()) < START


def test_a_neighbour_by_two_relations_counts_once() -> None:
    codes, vectors, batch = NeighborCodes(WIDTH, {"paper"}), torch.eye(1, WIDTH), batch_of([[1, 2]])
    again = {EdgeType("paper", "rev_cites", "paper"): Neighbors(torch.tensor([0]), torch.tensor([2]))}
    both = replace(batch, neighbors=batch.neighbors | again)
    assert torch.equal(codes(both, vectors), codes(batch, vectors))


def test_half_precision_stays() -> None:
    codes, batch = NeighborCodes(WIDTH, {"paper"}).to(torch.bfloat16), batch_of([[1, 2]])
    assert codes(batch, torch.ones(1, WIDTH, dtype=torch.bfloat16)).dtype == torch.bfloat16


def test_longer_vectors_have_longer_codes() -> None:
    codes, batch = NeighborCodes(WIDTH, {"paper"}), batch_of([[1, 2]])
    vectors = torch.randn(1, WIDTH, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(codes(batch, 10 * vectors), 10 * codes(batch, vectors))


def test_emptied_texts_have_the_codes_that_they_had(tmp_path: Path) -> None:
    model = Heterformer.from_backbone(save_backbone(tmp_path), schema(), network_readout="both")
    batch = random_batch(0)
    states = model.text_states(batch.texts.first(batch.neighbor_texts))
    vectors = model(batch.without_neighbor_texts(), states)
    torch.testing.assert_close(vectors, model(batch, states))
    model.config.neighbor_codes = False
    assert not torch.allclose(vectors, model(batch, states), atol=1e-3)


@pytest.mark.parametrize("network_readout", ["none", "textless"])
def test_codes_are_part_of_a_readout_of_texts(tmp_path: Path, network_readout: str) -> None:
    model = Heterformer.from_backbone(save_backbone(tmp_path), schema(), network_readout=network_readout)
    assert not model.config.neighbor_codes
    assert not hasattr(model, "neighbor_codes")
