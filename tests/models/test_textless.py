from __future__ import annotations

from dataclasses import replace

import torch

from heterformer.models.textless import TextlessNodes
from tests.models.random_batches import random_batch, schema


def test_vectors_are_projected_embeddings() -> None:
    nodes = TextlessNodes(schema(), dim=3, width=5, heterogeneous=True)
    rows = torch.tensor([4, 0, 4])
    torch.nn.init.normal_(nodes.tables[1].weight)
    expected = nodes.tables[1].weight[rows] @ nodes.projections[1].weight.T
    torch.testing.assert_close(nodes("venue", rows), expected)
    assert torch.equal(nodes.embeddings("venue", rows), nodes.tables[1].weight[rows])


def test_one_projection_for_all_types_unless_heterogeneous() -> None:
    assert len(TextlessNodes(schema(), 3, 5, heterogeneous=True).projections) == 2
    assert len(TextlessNodes(schema(), 3, 5, heterogeneous=False).projections) == 1


def test_gradients_are_of_the_rows_used() -> None:
    large = replace(schema(), counts=schema().counts | {"author": 3_000_000})
    nodes = TextlessNodes(large, dim=8, width=5, heterogeneous=True)
    nodes("author", torch.tensor([2_999_999, 7])).sum().backward()
    gradient = nodes.tables[0].weight.grad
    assert gradient.is_sparse
    assert gradient._nnz() == 2


def test_a_network_without_textless_nodes() -> None:
    nodes = TextlessNodes(replace(schema(), textless=()), dim=3, width=5, heterogeneous=False)
    assert list(nodes.parameters()) == []


def test_a_batch_can_carry_embeddings_of_its_own() -> None:
    nodes = TextlessNodes(schema(), dim=3, width=5, heterogeneous=True)
    torch.nn.init.normal_(nodes.tables[0].weight)
    batch, own = random_batch(0), torch.randn(2, 3)
    torch.testing.assert_close(nodes.of_batch(batch, "author"), nodes("author", batch.textless["author"]))
    carried = replace(batch, textless_embeddings={"venue": own})
    torch.testing.assert_close(nodes.of_batch(carried, "venue"), own @ nodes.projections[1].weight.T)
    torch.testing.assert_close(nodes.of_batch(carried, "author"), nodes.of_batch(batch, "author"))
    assert nodes.of_batch(replace(batch, textless={}), "author").shape == (0, 5)
