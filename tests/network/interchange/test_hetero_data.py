"""To PyTorch Geometric and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from torch_geometric.data import HeteroData

from heterformer import InputError, Network
from tests.networks import Facts, edges_of, few, networks, nodes_of


@settings(few, max_examples=10)
@given(networks())
def test_there_and_back_again(facts: Facts) -> None:
    with facts.built() as network:
        data = network.to_hetero_data()
        back = Network.from_hetero_data(
            data,
            {t: data[t].text for t in facts.texts},
            ids={t: data[t].id for t in data.node_types},
            predict=facts.predict,
        )
        for node_type in network.schema.node_types:
            assert nodes_of(back, node_type) == nodes_of(network, node_type)
        for relation in facts.relations:
            assert edges_of(back, relation.name) == edges_of(network, relation.name)


def papers_and_authors() -> Any:
    data = HeteroData()
    data["paper"].num_nodes, data["author"].num_nodes = 3, 2
    data["paper", "cites", "paper"].edge_index = torch.tensor([[0, 1, 1], [1, 2, 2]])
    data["paper", "by", "author"].edge_index = torch.tensor([[0, 2], [1, 0]])
    data["author", "rev_by", "paper"].edge_index = torch.tensor([[1, 0], [0, 2]])
    return data


def test_ids_default_to_row_numbers_and_reversed_edges_are_left_out() -> None:
    labels = {"paper": [["x"], [], ["y"]]}
    network = Network.from_hetero_data(papers_and_authors(), {"paper": ["A", "B", "C"]}, labels=labels)
    assert network.ids("author") == ["0", "1"]
    assert [r.name for r in network.schema.relations] == ["cites", "by"]
    assert edges_of(network, "cites") == [("0", "1"), ("1", "2")]
    assert network.report.relations["cites"].dropped["duplicate"].count == 1
    assert edges_of(network, "by") == [("0", "1"), ("2", "0")]
    data = network.to_hetero_data()
    assert data["paper"].label == labels["paper"]
    assert data["paper"].text == ["A", "B", "C"]
    assert data["paper", "cites", "paper"].edge_index.tolist() == [[0, 1], [1, 2]]
    assert data["author"].num_nodes == 2


def test_relations_of_one_name_between_different_types_are_told_apart() -> None:
    data = papers_and_authors()
    data["author", "cites", "paper"].edge_index = torch.tensor([[0], [1]])
    network = Network.from_hetero_data(data, {"paper": ["A", "B", "C"]})
    names = {r.name for r in network.schema.relations}
    assert names == {"paper-cites-paper", "by", "author-cites-paper"}


def test_texts_for_a_type_that_is_not_there() -> None:
    with pytest.raises(InputError) as caught:
        Network.from_hetero_data(papers_and_authors(), {"work": ["A"]})
    assert str(caught.value) == ("the HeteroData has no node type 'work', its types are 'paper', 'author'.")


@pytest.mark.parametrize("data", [None, "papers.pt", {"paper": 3}])
def test_something_else_than_a_hetero_data(data: Any) -> None:
    with pytest.raises(InputError, match=r"^the data are .*, expected a HeteroData of PyTorch Geometric\.$"):
        Network.from_hetero_data(data, {})


def test_a_wrong_number_of_texts() -> None:
    with pytest.raises(InputError) as caught:
        Network.from_hetero_data(papers_and_authors(), {"paper": ["A", "B"]})
    assert str(caught.value) == (
        "found 2 values for the node type 'paper', expected one for each of its 3 nodes."
    )


def small_data() -> HeteroData:
    data = HeteroData()
    data["paper"].num_nodes, data["author"].num_nodes = 3, 2
    data["paper", "cites", "paper"].edge_index = torch.tensor([[0, 1], [1, 2]])
    data["author", "rev_by", "paper"].edge_index = torch.tensor([[0, 1], [0, 1]])
    return data


def test_a_reversed_relation_without_its_forward_form_is_kept() -> None:
    data = small_data()
    data["author", "wrote", "paper"].edge_index = data["author", "rev_by", "paper"].edge_index
    del data["author", "rev_by", "paper"]
    data["paper", "rev_wrote", "author"].edge_index = torch.tensor([[0, 1], [0, 1]])
    network = Network.from_hetero_data(data, {"paper": ["a", "b", "c"]}, ids={"paper": np.array([7, 8, 9])})
    assert [r.name for r in network.schema.relations] == ["cites", "wrote"]
    assert network.ids("paper") == ["7", "8", "9"]


def test_an_edge_index_beyond_the_nodes() -> None:
    data = small_data()
    data["paper", "cites", "paper"].edge_index = torch.tensor([[0], [3]])
    with pytest.raises(InputError, match=r"found paper node 3, expected 0 to 2\.$"):
        Network.from_hetero_data(data, {"paper": ["a", "b", "c"]})


def films() -> Any:
    """Both directions of a relation under one name, as many data sets have them."""
    data = HeteroData()
    data["film"].num_nodes, data["actor"].num_nodes = 4, 2
    data["film", "to", "actor"].edge_index = torch.tensor([[0, 1, 2, 3], [0, 0, 1, 1]])
    data["actor", "to", "film"].edge_index = torch.tensor([[1, 0, 1, 0], [3, 0, 2, 1]])  # in another order
    data["film", "like", "film"].edge_index = torch.tensor([[0, 1, 2], [1, 2, 3]])
    return data


def test_of_both_directions_under_one_name_one_is_kept() -> None:
    network = Network.from_hetero_data(films(), {"film": list("abcd")})
    assert [r.name for r in network.schema.relations] == ["to", "like"]
    assert edges_of(network, "to") == [("0", "0"), ("1", "0"), ("2", "1"), ("3", "1")]


def test_relations_that_are_not_each_others_reverse_are_both_kept() -> None:
    data = films()
    data["actor", "to", "film"].edge_index = torch.tensor([[0], [3]])
    network = Network.from_hetero_data(data, {"film": list("abcd")})
    assert [r.name for r in network.schema.relations] == ["film-to-actor", "actor-to-film", "like"]
    assert edges_of(network, "actor-to-film") == [("0", "3")]


def test_a_symmetric_relation_within_a_type_is_kept() -> None:
    data = films()
    data["film", "like", "film"].edge_index = torch.tensor([[0, 1], [1, 0]])
    assert edges_of(Network.from_hetero_data(data, {"film": list("abcd")}), "like") == [
        ("0", "1"),
        ("1", "0"),
    ]


def test_an_edge_index_of_another_shape() -> None:
    data = films()
    data["film", "like", "film"].edge_index = torch.tensor([[0], [1], [2]])
    with pytest.raises(InputError, match=r"\('film', 'like', 'film'\): 'edge_index' has the shape \(3, 1\)"):
        Network.from_hetero_data(data, {"film": list("abcd")})


def test_texts_tell_how_many_nodes_there_are() -> None:
    data = films()
    del data["film"]["num_nodes"]
    assert len(Network.from_hetero_data(data, {"film": list("abcd")}).ids("film")) == 4
    del data["actor"]["num_nodes"]
    with pytest.raises(InputError, match="has no number of 'actor' nodes; set num_nodes"):
        Network.from_hetero_data(data, {"film": list("abcd")})


class File:
    """Vectors in a file, as ``embed(..., out=...)`` gives them."""

    path = "vectors.parquet"
    types = ("paper",)

    def __init__(self, ids: list[str]) -> None:
        self._ids = ids

    def ids(self, node_type: str) -> list[str]:
        return self._ids

    def matrix(self, node_type: str) -> Any:
        return np.full((3, 2), 0.5, dtype=np.float16)


def test_vectors_become_features() -> None:
    network = Network.from_hetero_data(papers_and_authors(), {"paper": ["a", "b", "c"]}, predict="cites")
    papers = np.arange(6.0).reshape(3, 2)
    data = network.to_hetero_data(vectors={"paper": papers, "author.h0": np.zeros((2, 1))})
    assert data["paper"].x.dtype == torch.float32
    assert data["paper"].x.tolist() == papers.tolist()
    assert "x" not in data["author"]
    data["paper"].x[0, 0] = 7.0
    assert papers[0, 0] == 0.0  # a copy
    data = network.to_hetero_data(vectors=File(network.ids("paper")))
    assert data["paper"].x.tolist() == [[0.5, 0.5]] * 3


def test_vectors_of_other_nodes() -> None:
    network = Network.from_hetero_data(papers_and_authors(), {"paper": ["a", "b", "c"]}, predict="cites")
    with pytest.raises(InputError, match=r"'paper' have the shape \(2, 4\), expected \(3, d\)"):
        network.to_hetero_data(vectors={"paper": np.zeros((2, 4))})
    with pytest.raises(InputError, match=r"vectors\.parquet: its paper nodes are not those of"):
        network.to_hetero_data(vectors=File(["2", "1", "0"]))
