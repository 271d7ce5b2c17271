"""``model.encode``: texts that are no nodes, alone or with neighbours that are."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from heterformer.errors import InputError
from heterformer.models.contract import NodeEncoder
from heterformer.models.registry import load_model
from heterformer.models.text_encoder import edge_type_to
from heterformer.network.lookup import Node
from heterformer.network.schema import EdgeType, Relation, Schema
from heterformer.network.store import Network
from heterformer.search.searcher import Searcher
from heterformer.training.run import Run
from tests.learning import synthetic_network, tiny_model, tiny_network
from tests.search.searching import tiny_run


@cache
def model() -> NodeEncoder:
    return load_model(tiny_run())


def neighbors_of(row: int) -> dict[str, list[str]]:
    """The ids of all neighbours of a paper."""
    found = {}
    for node_type in tiny_network().schema.node_types:
        adjacency = tiny_network().adjacency("paper", node_type)
        rows = adjacency.neighbor[adjacency.indptr[row] : adjacency.indptr[row + 1]]
        found[node_type] = tiny_network().ids(node_type, rows)
    return found


def test_texts_give_an_array_and_a_single_text_one_vector() -> None:
    texts = tiny_network().texts("paper", range(5))
    vectors = model().encode(texts)
    assert (vectors.dtype, vectors.shape) == (np.float32, (5, model().width))
    for text, vector in zip(texts, vectors, strict=True):
        np.testing.assert_allclose(model().encode(text), vector, atol=1e-6)
    assert model().encode([]).shape == (0, model().width)


def test_a_text_has_the_vector_that_a_search_gives_it() -> None:
    searcher = Searcher(tiny_run())
    for row in (0, 7, 42):
        (text,), neighbors = tiny_network().texts("paper", [row]), neighbors_of(row)
        found = model().encode(text, neighbors, network=tiny_network())
        nodes = [Node(t, int(r)) for t, ids in neighbors.items() for r in tiny_network().rows(t, ids)]
        np.testing.assert_allclose(found, searcher.encoder.encode(text, nodes), atol=1e-5)
        assert np.abs(found - model().encode(text)).max() > 1e-4


@pytest.mark.parametrize("batch_size", [1, 3, 32])
def test_a_vector_does_not_depend_on_its_batch(batch_size: int) -> None:
    texts = tiny_network().texts("paper", range(7))
    neighbors = [neighbors_of(row) if row % 2 else {} for row in range(7)]
    together = model().encode(texts, neighbors, network=tiny_network(), batch_size=batch_size)
    for text, near, vector in zip(texts, neighbors, together, strict=True):
        np.testing.assert_allclose(model().encode(text, near, network=tiny_network()), vector, atol=1e-5)


def test_half_a_character_is_refused() -> None:
    with pytest.raises(InputError, match=r"^the text 'a\\ud800' is not UTF-8, expected text in UTF-8\.$"):
        model().encode(["b", "a\ud800"])


def test_encoding_leaves_the_model_in_its_mode() -> None:
    trained = Run(tiny_run()).model()
    trained.train()
    before = trained.encode("graph")
    assert trained.training
    assert np.array_equal(before, trained.encode("graph"))


def test_textless_neighbours_need_no_network() -> None:
    (author,) = tiny_network().ids("author", [3])
    alone, found = model().encode("graph"), model().encode("graph", {"author": [author]})
    assert np.abs(found - alone).max() > 1e-4
    assert np.array_equal(found, model().encode("graph", {"author": [author]}, network=tiny_network()))


def refused(*arguments: object, network: Network | None = None, encoder: NodeEncoder | None = None) -> str:
    with pytest.raises(InputError) as caught:
        (encoder or model()).encode(*arguments, network=network)  # type: ignore[arg-type]
    return str(caught.value)


def test_neighbours_that_cannot_be_used() -> None:
    paper = tiny_network().ids("paper", [3])
    assert refused("graph", {"paper": paper}) == (
        "neighbours of type 'paper' are given by id; give network= as well."
    )
    assert "has not seen author 'nobody' in training" in refused("graph", {"author": ["nobody"]})
    joined = "no relation joins 'paper' and 'autor'; neighbours may be of the types "
    assert refused("graph", {"autor": ["a1"]}).startswith(joined)
    assert refused(["a", "b"], [{}]) == (
        "neighbors has 1 dictionaries, expected a list of 2, one for each text."
    )
    assert "one dictionary, expected a list of 2" in refused(["a", "b"], {"author": []})
    assert "expected one dictionary for one text" in refused("a", [{}])
    assert "there is no paper with the id 'none'" in refused(
        "graph", {"paper": ["none"]}, network=tiny_network()
    )
    assert refused("graph", {"autor": ["a1"]}, network=tiny_network()).startswith(joined)


def test_a_model_without_a_folder_needs_its_tokenizer_and_its_own_network(
    tmp_path: Path,
) -> None:
    assert "give tokenizer= as well" in refused("graph", encoder=tiny_model())
    tokenizer, author = model().tokenizer, tiny_network().ids("author", [0])
    found = tiny_model().encode("graph", {"author": author}, network=tiny_network(), tokenizer=tokenizer)
    assert found.shape == (tiny_model().width,)
    other = synthetic_network(tmp_path, papers=300)
    with pytest.raises(InputError, match="expected the network that it was made for"):
        tiny_model().encode("graph", {"author": author}, network=other, tokenizer=tokenizer)


def schema(*relations: Relation) -> Schema:
    predicted = Relation("answers", "post", "paper")
    return Schema(("post", "paper"), ("user",), {}, (predicted, *relations), "answers", {}, 8)


def test_a_query_sees_a_neighbour_by_the_first_relation_that_points_to_it() -> None:
    back, first, second = (
        Relation("writes", "user", "post"),
        Relation("names", "post", "user"),
        Relation("thanks", "post", "user"),
    )
    assert edge_type_to(schema(back, first, second), "user") == EdgeType("post", "names", "user")
    assert edge_type_to(schema(back), "user") == EdgeType("post", "rev_writes", "user")
    assert edge_type_to(schema(), "paper") == EdgeType("post", "answers", "paper")


def test_a_type_that_nothing_joins_to_the_query() -> None:
    with pytest.raises(InputError) as caught:
        edge_type_to(schema(Relation("writes", "user", "paper")), "user")
    assert str(caught.value) == (
        "no relation joins 'post' and 'user'; neighbours may be of the types 'paper'."
    )
