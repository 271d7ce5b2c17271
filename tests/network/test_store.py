"""A network on disk: what can be asked of it, and what is not a network."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heterformer.errors import InputError
from heterformer.network.build.report import Finding
from heterformer.network.store import Network
from tests.networks import Tables


@pytest.fixture
def network(tables: Tables) -> Network:
    return tables.build()


def test_a_network_opens_as_it_was_built(network: Network) -> None:
    opened = Network.open(str(network.path))
    assert repr(opened) == "Network(small: 4 paper)"
    assert opened.schema == network.schema
    assert opened.fingerprint == network.fingerprint


def test_the_build_report_is_kept(tables: Tables) -> None:
    tables.write("cites.csv", "source,target\np1,p2\np1,x\n")
    path = tables.build().path
    tally = Network.open(path).report.relations["cites"]
    assert (tally.read, tally.kept, tally.dropped) == (2, 1, {"unknown paper": Finding(1, ["p1 -> x"])})


def test_ids_texts_and_rows(network: Network) -> None:
    assert network.ids("paper", [2, 0]) == ["p3", "p1"]
    assert network.texts("paper", np.array([1])) == ["Byzantine poems"]
    assert network.rows("paper", ["p3", "p1", "p3"]).tolist() == [2, 0, 2]
    assert network.rows("paper", []).tolist() == []
    assert [t for batch in network.text_batches("paper") for t in batch] == network.texts("paper")


def test_a_name_is_the_name_column_else_the_text_else_the_id(tables: Tables) -> None:
    tables.write("papers.csv", "id,title,short\np1,A,a\np2,B,b\np3,C,c\np4,D,d\n")
    tables.spec["nodes"]["author"] = None
    tables.spec["relations"]["by"] = {"from": "paper", "to": "author", "column": "short"}
    assert tables.build().names("paper", [1]) == ["B"]
    tables.paper["name"] = "short"
    tables.out = tables.folder / "again"
    network = tables.build()
    assert network.names("paper", [1]) == ["b"]
    assert network.names("author", [0]) == ["a"]


def test_a_node_without_a_name_is_shown_by_its_text_and_one_without_either_by_its_id(tables: Tables) -> None:
    tables.write("papers.csv", "id,title,short\np1,A,a\np2,B,\np3,,\np4,D,d\n")
    tables.paper["name"] = "short"
    assert tables.build().names("paper", iter([0, 1, 2])) == ["a", "B", "p3"]


def test_neighbours_are_memory_mapped(network: Network) -> None:
    adjacency = network.adjacency("paper", "paper")
    assert isinstance(adjacency.neighbor.base, np.memmap)
    assert network.adjacency("paper", "paper") is adjacency


QUESTIONS = {
    "rows": (("paper", ["p1", "p9"]), "there is no paper with the id 'p9'."),
    "ids": (("venue",), "no node type 'venue', the types are 'paper'."),
    "adjacency": (("paper", "venue"), "no node type 'venue', the types are 'paper'."),
    "edges": (("cite",), "no relation 'cite', the relations are 'cites'."),
    "edge_values": (("cite", "weight"), "no relation 'cite', the relations are 'cites'."),
    "attribute": (("paper", "year"), "node type 'paper' has no attribute 'year', its attributes are none."),
    "labels": (("paper",), "node type 'paper' has no 'label' column in its specification."),
    "times": (("paper",), "node type 'paper' has no 'time' column in its specification."),
    "splits": (("paper",), "node type 'paper' has no 'split' column in its specification."),
}


@pytest.mark.parametrize("method", QUESTIONS)
def test_asking_for_what_is_not_there(method: str, network: Network) -> None:
    arguments, message = QUESTIONS[method]
    with pytest.raises(InputError) as caught:
        getattr(network, method)(*arguments)
    assert str(caught.value) == f"{network.path}: {message}"


@pytest.mark.parametrize("ids", ["p1", ["p1", 2], [None]])
def test_ids_are_a_list_of_strings(ids: Any, network: Network) -> None:
    with pytest.raises(InputError, match=r"^ids are ('p1'|2|None), expected a list of strings\.$"):
        network.rows("paper", ids)


def test_a_specification_that_is_no_path(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        Network.build({"nodes": {}}, tmp_path / "out")  # type: ignore[arg-type]
    message = "the specification is {'nodes': {}}, expected the path of a YAML file."
    assert str(caught.value) == message


@pytest.mark.parametrize("path", ["nodes/paper.arrow", "adjacency/paper--paper/neighbor.npy"])
def test_a_damaged_network(path: str, tables: Tables) -> None:
    network = tables.build()
    (network.path / path).write_bytes(b"short")
    with pytest.raises(InputError, match=r"is damaged \(.*\); build the network again\.$"):
        network.texts("paper"), network.edges("cites")


STRANGE: dict[str, tuple[tuple[str | int, ...], Any]] = {
    "a text-rich type": (("schema", "text_rich"), ["../../thesis"]),
    "a textless type": (("schema", "textless"), ["../../thesis"]),
    "an absolute type": (("schema", "text_rich"), ["/tmp/thesis"]),
    "a relation": (("schema", "relations", 0, "name"), "../../thesis"),
    "an end of a relation": (("schema", "relations", 0, "target"), "../../thesis"),
    "a count": (("schema", "counts"), {"paper": 3, "../../thesis": 1}),
    "a neighbor": (("schema", "neighbors"), {"../../thesis": 1}),
    "the predicted relation": (("schema", "predict"), "../../thesis"),
    "the fingerprint": (("fingerprint",), "../../../thesis"),
    "an absolute fingerprint": (("fingerprint",), "/tmp/thesis"),
    "a fingerprint that is a folder of a run": (("fingerprint",), "vectors"),
    "a fingerprint that is no text": (("fingerprint",), 7),
}


@pytest.mark.parametrize("place", STRANGE)
def test_a_stranger_s_names_lead_nowhere(place: str, network: Network) -> None:
    path = network.path / "network.json"
    values = json.loads(path.read_text())
    (*keys, last), value = STRANGE[place]
    inner = values
    for key in keys:
        inner = inner[key]
    inner[last] = value
    path.write_text(json.dumps(values))
    with pytest.raises(InputError, match=r"network.json: (.* is not allowed|the fingerprint|its types, )"):
        Network.open(network.path)


@pytest.mark.parametrize(("name", "what"), [("paper", "node types"), ("cites", "relations")])
def test_a_stranger_s_name_leads_nowhere_though_all_places_agree_on_it(
    name: str, what: str, network: Network
) -> None:
    path = network.path / "network.json"
    path.write_text(path.read_text().replace(f'"{name}"', '"../../thesis"'))
    with pytest.raises(InputError, match=rf"network.json: {what}: the name '../../thesis' is not allowed"):
        Network.open(network.path)
