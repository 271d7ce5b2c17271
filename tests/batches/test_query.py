"""A text of its own with neighbours of the network's."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from heterformer.batches.query import query_batch
from heterformer.network.schema import EdgeType
from tests.batches.decoding import decoder
from tests.networks import Facts, few, networks, tokenizer


@few
@given(networks())
def test_a_nodes_text_with_its_neighbours_is_a_batch_of_that_node(facts: Facts) -> None:
    with decoder(facts) as read:
        for node_type, texts in facts.texts.items():
            for name, text in zip(facts.ids[node_type], texts, strict=True):
                around: dict[EdgeType, list[int]] = {}
                for edge_type, other in facts.around((node_type, name)):
                    (row,) = read.network.rows(edge_type.neighbor, [other])
                    around.setdefault(edge_type, []).append(int(row))
                words = tokenizer()(text)["input_ids"]
                batch = query_batch(read.network.schema, read.tokens, [words], [around])
                (center,) = read.centers(batch)
                assert center.node == (node_type, name)
                assert len(center.neighbors) == len(set(center.neighbors))
                expected = {(e, (e.neighbor, other)) for e, other in facts.around(center.node)}
                assert set(center.neighbors) == expected
                assert batch.centers.tolist() == [batch.neighbor_texts]
                neighbors = read.texts(batch)[: batch.neighbor_texts]
                assert len(neighbors) == len(set(neighbors))


@few
@given(networks())
def test_a_text_alone(facts: Facts) -> None:
    with decoder(facts) as read:
        batch = query_batch(read.network.schema, read.tokens, [[5, 6, 7]], [{}])
        assert batch.texts.tokens.tolist() == [5, 6, 7]
        assert batch.texts.offsets.tolist() == [0, 3]
        assert (batch.neighbor_texts, batch.centers.tolist()) == (0, [0])
        assert (batch.neighbors, batch.textless) == ({}, {})


@few
@given(networks(), st.data())
def test_a_neighbour_given_twice_is_one(facts: Facts, data: st.DataObject) -> None:
    with decoder(facts) as read:
        edge_type = data.draw(st.sampled_from(read.network.schema.edge_types))
        batch = query_batch(read.network.schema, read.tokens, [[5]], [{edge_type: [0, 0]}])
        assert len(batch.neighbors[edge_type].node) == 1
        assert batch.neighbor_texts + sum(map(len, batch.textless.values())) == 1


@few
@given(networks())
def test_several_texts_are_the_centers_of_one_batch(facts: Facts) -> None:
    with decoder(facts) as read:
        node_type = read.network.schema.predicted[0].source
        names, queries, neighbors = facts.ids[node_type], [], []
        for name, text in zip(names, facts.texts[node_type], strict=True):
            around: dict[EdgeType, list[int]] = {}
            for edge_type, other in facts.around((node_type, name)):
                (row,) = read.network.rows(edge_type.neighbor, [other])
                around.setdefault(edge_type, []).append(int(row))
            queries.append(tokenizer()(text)["input_ids"])
            neighbors.append(around)
        batch = query_batch(read.network.schema, read.tokens, queries, neighbors)
        for name, center in zip(names, read.centers(batch), strict=True):
            expected = {(e, (e.neighbor, other)) for e, other in facts.around((node_type, name))}
            assert (center.node, set(center.neighbors)) == ((node_type, name), expected)
        assert all((n.center.diff() >= 0).all() for n in batch.neighbors.values())
