from __future__ import annotations

import torch

from heterformer.models.aggregation import Aggregation, EdgeProjections, Neighborhoods
from tests.models.random_batches import schema


def test_rows_point_at_the_centre_and_its_messages() -> None:
    messages = (torch.zeros(4, 2),)
    neighborhoods = Neighborhoods.from_edges(3, torch.tensor([2, 0, 2, 2]), messages)
    found = [row[here].tolist() for row, here in zip(neighborhoods.rows, neighborhoods.present, strict=True)]
    assert found == [[0, 4], [1], [2, 3, 5, 6]]  # rows 0 to 2 are the centres, then the messages


def test_a_centre_alone_is_its_own_token() -> None:
    aggregation = Aggregation(8, heads=2)
    aggregation.initialize("identity", std=0.02)
    center = torch.randn(3, 8)
    neighborhoods = Neighborhoods.from_edges(3, torch.empty(0, dtype=torch.int64), (torch.empty(0, 8),))
    torch.testing.assert_close(aggregation(center, neighborhoods.messages_at(1), neighborhoods), center)


def test_identity_start_mixes_towards_similar_neighbours() -> None:
    aggregation = Aggregation(4, heads=1)
    aggregation.initialize("identity", std=0.02)
    center = torch.tensor([[2.0, 0, 0, 0]])
    messages = torch.tensor([[4.0, 0, 0, 0], [0, 4.0, 0, 0]])
    neighborhoods = Neighborhoods.from_edges(1, torch.tensor([0, 0]), (messages,))
    weights = torch.softmax(torch.tensor([4.0, 8.0, 0.0]) / 4 / 2, 0)  # q/2 . k/2 / sqrt(4)
    expected = weights @ torch.cat([center, messages])
    torch.testing.assert_close(aggregation(center, neighborhoods.messages_at(1), neighborhoods)[0], expected)


def test_one_projection_for_all_edge_types_unless_heterogeneous() -> None:
    edge_types = schema().edge_types
    assert len(EdgeProjections(edge_types, 4, heterogeneous=True).projections) == len(edge_types)
    assert len(EdgeProjections(edge_types, 4, heterogeneous=False).projections) == 1
