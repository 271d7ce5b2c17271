"""HeteroData on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch_geometric.data import HeteroData

from heterformer import InputError
from heterformer.network.interchange.hetero_data_files import (
    SPEC_KEYS,
    load_hetero_data,
    open_network,
    save_hetero_data,
)
from tests.networks import edges_of


def papers() -> Any:
    data = HeteroData()
    data["paper"].num_nodes = 3
    data["paper"].x = torch.arange(6.0).reshape(3, 2).t().t()[:, ::2]  # not contiguous
    data["paper"].text = ["A", "B", "C"]
    data["paper", "cites", "paper"].edge_index = torch.tensor([[0, 1], [1, 2]])
    data["paper", "cites", "paper"].edge_attr = data["paper"].x[:2]
    data.note = {"made": "by hand"}
    return data


def test_tensors_and_values_come_back(tmp_path: Path) -> None:
    save_hetero_data(papers(), tmp_path / "data")
    assert {p.name for p in (tmp_path / "data").iterdir()} == {"hetero_data.json", "hetero_data.safetensors"}
    back, _ = load_hetero_data(tmp_path / "data")
    assert back.note == {"made": "by hand"}
    assert back["paper"].text == ["A", "B", "C"]
    assert back["paper"].num_nodes == 3
    assert torch.equal(back["paper"].x, papers()["paper"].x)
    assert back.edge_types == [("paper", "cites", "paper")]
    cites = back["paper", "cites", "paper"]
    assert cites.edge_index.tolist() == [[0, 1], [1, 2]]
    assert cites.edge_attr.tolist() == papers()["paper"].x[:2].tolist()


def test_a_network_from_a_file(tmp_path: Path) -> None:
    save_hetero_data(papers(), tmp_path / "data", {"max_tokens": 9, "name": "mine"})
    network = open_network(tmp_path / "data", name="other")
    assert network.ids("paper") == ["0", "1", "2"]
    assert network.texts("paper") == ["A", "B", "C"]
    assert edges_of(network, "cites") == [("0", "1"), ("1", "2")]
    assert (network.name, network.schema.max_tokens) == ("other", 9)


def test_without_texts_there_is_no_network(tmp_path: Path) -> None:
    data = papers()
    del data["paper"].text
    save_hetero_data(data, tmp_path / "data")
    with pytest.raises(InputError, match="no node type has 'text', a list of strings; build"):
        open_network(tmp_path / "data")


def test_what_no_file_holds(tmp_path: Path) -> None:
    data = papers()
    data["paper"].x = torch.eye(3).to_sparse()
    with pytest.raises(InputError) as caught:
        save_hetero_data(data, tmp_path / "data")
    found = "the HeteroData's paper attribute 'x' is a sparse tensor"
    assert str(caught.value) == f"{found}, expected a dense one or 'edge_index'."
    data["paper"].x = {1, 2}
    with pytest.raises(InputError, match="attribute 'x' is a set, expected a tensor or a JSON value"):
        save_hetero_data(data, tmp_path / "data")
    assert not (tmp_path / "data").exists()


def test_a_folder_that_is_something_else_or_damaged(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a saved HeteroData, expected a folder with"):
        load_hetero_data(tmp_path)
    save_hetero_data(papers(), tmp_path / "data")
    values = tmp_path / "data" / "hetero_data.json"
    values.write_text(values.read_text().replace('"format": 1', '"format": 7'))
    with pytest.raises(InputError, match="HeteroData format 7, this version reads 1"):
        load_hetero_data(tmp_path / "data")
    values.write_text(values.read_text()[:40])
    with pytest.raises(InputError, match=r"hetero_data\.json: cannot be read or is damaged"):
        load_hetero_data(tmp_path / "data")


def test_a_damaged_tensor_file(tmp_path: Path) -> None:
    save_hetero_data(papers(), tmp_path / "data")
    tensors = tmp_path / "data" / "hetero_data.safetensors"
    tensors.write_bytes(tensors.read_bytes()[:20])
    with pytest.raises(InputError, match=r"hetero_data\.safetensors: cannot be read or is damaged"):
        load_hetero_data(tmp_path / "data")


@pytest.mark.parametrize("name", ["texts", "out", "relations", "frames"])
def test_unknown_keys_of_a_file_are_refused(tmp_path: Path, name: str) -> None:
    save_hetero_data(papers(), tmp_path / "data", {"name": "mine", name: str(tmp_path / "elsewhere")})
    with pytest.raises(InputError) as caught:
        open_network(tmp_path / "data")
    known = ", ".join(map(repr, SPEC_KEYS))
    assert name not in SPEC_KEYS
    file = tmp_path / "data" / "hetero_data.json"
    assert str(caught.value) == f"{file}: network has {name!r}, expected some of {known}."
    assert not (tmp_path / "elsewhere").exists()
