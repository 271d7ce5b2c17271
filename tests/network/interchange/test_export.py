"""Networks for other tools, and back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import networkx
import polars as pl
import pytest
from hypothesis import given, settings

from heterformer import InputError, Network
from heterformer.cli.main import main
from heterformer.network.build import build_network
from heterformer.network.interchange.export import export_network
from heterformer.network.interchange.rows import edge_rows
from heterformer.network.spec import NetworkSpec
from tests.network.interchange.exporting import EDGES, PAPERS, contents, odd_network, stored
from tests.networks import Facts, edges_of, few, files, networks


@pytest.fixture
def network(tmp_path: Path) -> Network:
    return odd_network(tmp_path / "odd.net")


def rebuilt(tables: Path) -> Network:
    spec = NetworkSpec.load(tables / "network.yaml")
    return build_network(spec, tables.with_suffix(".net"), data=tables)


# --- CSV -------------------------------------------------------------------------------------------------


def test_csv_tables_build_the_same_network(network: Network, tmp_path: Path) -> None:
    export_network(network, tmp_path / "out", "csv")
    again = rebuilt(tmp_path / "out")
    assert files(tmp_path / "out") == {
        *("network.yaml", "nodes", "nodes/paper.csv", "nodes/author.csv", "nodes/venue.csv", "relations"),
        *(f"relations/{name}.csv" for name in ("cites", "extends", "written_by", "published_in")),
    }
    assert contents(again) == contents(network)


@settings(few, max_examples=10)
@given(networks())
def test_csv_of_random_networks(facts: Facts) -> None:
    with facts.built() as network:
        folder = network.path.parent / "tables"
        export_network(network, folder, "csv")
        assert rebuilt(folder).fingerprint == network.fingerprint


def test_edges_are_the_same_in_blocks_of_any_size(network: Network) -> None:
    for relation in network.schema.relations:
        assert list(edge_rows(network, relation, block_size=2)) == list(edge_rows(network, relation))
        assert list(edge_rows(network, relation)) == edges_of(network, relation.name)


def test_attributes_keep_their_names(network: Network, tmp_path: Path) -> None:
    export_network(network, tmp_path / "out", "csv")
    heading = (tmp_path / "out" / "nodes" / "paper.csv").read_text("utf-8").partition("\n")[0]
    assert heading == "id,text,label,split,name,time,type,id_,rank"
    spec = NetworkSpec.load(tmp_path / "out" / "network.yaml")
    assert spec.nodes["paper"].separator == "|"  # the first that no label has in it
    assert spec.nodes["venue"].separator is None


def labelled(out: Path, labels: list[list[str]], **columns: list[str]) -> Network:
    frame = pl.DataFrame({"key": ["a", "b"], "title": ["A", "B"], "field": labels, **columns})
    node = {"id": "key", "text": "title", "label": "field", "keep": list(columns)}
    relation = {"from": "paper", "to": "paper", "columns": ["a", "b"]}
    spec = {"nodes": {"paper": node}, "relations": {"cites": relation}}
    return Network.from_frames(spec, {"paper": frame}, {"cites": {"a": ["a"], "b": ["b"]}}, out)


def test_columns_give_way_to_attributes(tmp_path: Path) -> None:
    network = labelled(tmp_path / "net", [["x"], ["y"]], id=["1", "2"], id_=["3", "4"], text=["5", "6"])
    export_network(network, tmp_path / "out", "csv")
    assert contents(rebuilt(tmp_path / "out")) == contents(network)


@pytest.mark.parametrize("label", ["a;b|c / d\x1f", " padded"])
def test_labels_that_no_separator_parts(tmp_path: Path, label: str) -> None:
    network = labelled(tmp_path / "net", [["x", label], ["y"]])
    with pytest.raises(InputError) as caught:
        export_network(network, tmp_path / "out", "csv")
    found = f"the paper label {label!r} cannot be one of several in a CSV field"
    assert str(caught.value) == f"{tmp_path / 'net'}: {found}; export to hetero-data instead."
    assert not (tmp_path / "out").exists()


# --- Graphs ----------------------------------------------------------------------------------------------


def edges(graph: Any) -> set[tuple[str, str, str]]:
    return set(graph.edges(keys=True))


EXPECTED = {
    *((f"paper:{a}", f"paper:{b}", name) for name in ("cites", "extends") for a, b in EDGES[name]),
    *((f"paper:{a}", f"author:{b}", "written_by") for a, b in EDGES["written_by"]),
}


def test_networkx_reads_the_node_link_file(network: Network, tmp_path: Path) -> None:
    export_network(network, tmp_path / "deep" / "out.json", "networkx")
    values = json.loads((tmp_path / "deep" / "out.json").read_text("utf-8"))
    graph = networkx.node_link_graph(values, edges="edges")
    assert isinstance(graph, networkx.MultiDiGraph)
    assert edges(graph) == EXPECTED
    assert graph.graph == {"name": "ödd", "predict": "cites", "fingerprint": network.fingerprint}
    assert len(graph) == 5 + 3 + 2
    assert graph.nodes["paper:p 1"] == {
        "type": "paper",
        "node": "p 1",
        "text": PAPERS["title"][0],
        "label": ["a; b", "c"],
        "name": "Generals",
        "time": 1999.5,
        "split": "train",
        "type_": "t1",
        "id_": "k1",
        "rank": "1",
    }
    assert graph.nodes["author:A\r"] == {"type": "author", "node": "A\r"}


def test_networkx_reads_graphml(network: Network, tmp_path: Path) -> None:
    export_network(network, tmp_path / "out.graphml", "graphml")
    graph = networkx.read_graphml(tmp_path / "out.graphml")
    assert isinstance(graph, networkx.MultiDiGraph)
    assert {(a, b, data["relation"]) for a, b, data in graph.edges(data=True)} == EXPECTED
    assert graph.nodes['paper:p"2'] == {
        "type": "paper",
        "node": 'p"2',
        "label": "Kernel\r\nbugs\tand\ufffdmore",  # no XML can hold a vertical tab
        "text": "Kernel\r\nbugs\tand\ufffdmore",
        "class": "",
        "split": "test",
        "id_": "k2",
        "rank": "2",
    }
    assert graph.nodes["paper:論5"]["time"] == 1e-7
    assert graph.nodes["paper:論5"]["class"] == "a; b"
    assert graph.nodes["paper:論5"]["type_"] == "t5"
    assert graph.nodes["paper:論5"]["text"] == PAPERS["title"][4]
    assert graph.nodes["author:B"] == {"type": "author", "node": "B", "label": "B"}


# --- HeteroData, and the command -------------------------------------------------------------------------


def test_hetero_data_and_back(network: Network, tmp_path: Path) -> None:
    main(["export", str(network.path), str(tmp_path / "out"), "--to", "hetero-data"])
    main(["build", str(tmp_path / "out"), str(tmp_path / "again.net")])
    again = Network.open(tmp_path / "again.net")
    for relation in network.schema.relations:
        assert edges_of(again, relation.name) == edges_of(network, relation.name)
    without = {
        t: [{k: v for k, v in row.items() if not k.startswith("attribute.")} for row in rows]
        for t, rows in stored(network).items()
    }
    assert stored(again) == without
    assert again.schema == network.schema
    assert again.name == "ödd"


@pytest.mark.parametrize("to", ["csv", "graphml", "networkx", "hetero-data"])
def test_nothing_is_overwritten(network: Network, tmp_path: Path, to: Any) -> None:
    (tmp_path / "out").write_text("mine")
    with pytest.raises(InputError, match="out: exists already; remove it or choose another name"):
        export_network(network, tmp_path / "out", to)
    assert (tmp_path / "out").read_text() == "mine"


def test_the_command_says_what_it_wrote(
    network: Network, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["export", str(network.path), str(tmp_path / "out"), "--to", "csv"])
    assert capsys.readouterr().out == f"Wrote {tmp_path / 'out'}.\n"
    assert contents(rebuilt(tmp_path / "out")) == contents(network)


def test_safe_tables_hold_no_formulas(tmp_path: Path) -> None:
    papers = {"id": ["=1", "-2", "p3"], "title": ["=cmd|x", "@SUM(A1)", "+fine"], "year": [-1.0, 2.0, 3.0]}
    spec = {
        "nodes": {"paper": {"text": "title", "time": "year"}},
        "relations": {"cites": {"from": "paper", "to": "paper", "columns": ["a", "b"]}},
    }
    network = Network.from_frames(spec, {"paper": papers}, {"cites": {"a": ["=1", "p3"], "b": ["-2", "=1"]}})
    export_network(network, tmp_path / "safe", "csv", safe=True)
    lines = (tmp_path / "safe" / "nodes" / "paper.csv").read_text(encoding="utf-8").splitlines()
    assert lines == ["id,text,time", "'=1,'=cmd|x,-1.0", "'-2,'@SUM(A1),2.0", "p3,'+fine,3.0"]
    assert edges_of(rebuilt(tmp_path / "safe"), "cites") == [("'=1", "'-2"), ("p3", "'=1")]
    export_network(network, tmp_path / "plain", "csv")
    assert edges_of(rebuilt(tmp_path / "plain"), "cites") == edges_of(network, "cites")


def test_safe_is_for_csv(network: Network, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["export", str(network.path), str(tmp_path / "x"), "--to", "graphml", "--safe"])
    assert "--safe applies to --to csv only, but --to is graphml." in capsys.readouterr().err


# --- Weights, times, attributes and names ----------------------------------------------------------------


def valued_network(out: Path) -> Network:
    """Edges with weights and times, attributes of both kinds of nodes, names as text."""
    spec = {
        "nodes": {
            "paper": {"text": "title", "attributes": {"year": "category", "open": "boolean"}},
            "author": {"attributes": ["born"], "text_from": "name"},
        },
        "relations": {
            "cites": {"from": "paper", "to": "paper", "columns": ["a", "b"], "weight": "w", "time": "t"},
            "written_by": {"from": "paper", "to": "author", "columns": ["a", "b"], "time": "t"},
        },
    }
    papers = {"id": ["x", "y"], "title": ["X", "Y"], "year": [1999, None], "open": [True, False]}
    cites = {"a": ["x", "y"], "b": ["y", "x"], "w": [0.1, 3.0], "t": [1999.25, 2001.0]}
    by = {"a": ["x", "y"], "b": ["ann", "bob"], "t": [5.0, 6.0]}
    nodes = {"paper": papers, "author": {"id": ["ann", "bob"], "born": [1950.5, None]}}
    return Network.from_frames(spec, nodes, {"cites": cites, "written_by": by}, out)


def values(network: Network) -> object:
    """What the network has beyond nodes, texts and edges."""
    columns = {
        (r, c): None if (v := network.edge_values(r, c)) is None else v.tolist()
        for r in ("cites", "written_by")
        for c in ("weight", "time")
    }
    return columns, network.attribute_kinds, network.text_from, network.edge_columns, contents(network)


@pytest.mark.parametrize("to", ["csv", "hetero-data"])
def test_weights_times_and_attributes_come_back(tmp_path: Path, to: Any) -> None:
    network = valued_network(tmp_path / "net")
    export_network(network, tmp_path / "out", to)
    source = tmp_path / "out" / "network.yaml" if to == "csv" else tmp_path / "out"
    main(["build", str(source), str(tmp_path / "again.net")])
    assert values(Network.open(tmp_path / "again.net")) == values(network)


def test_graphs_have_weights_times_and_attributes(tmp_path: Path) -> None:
    network = valued_network(tmp_path / "net")
    export_network(network, tmp_path / "out.graphml", "graphml")
    export_network(network, tmp_path / "out.json", "networkx")
    link = json.loads((tmp_path / "out.json").read_text("utf-8"))
    graphs = networkx.read_graphml(tmp_path / "out.graphml"), networkx.node_link_graph(link, edges="edges")
    for graph in graphs:
        edges = {(a, b): data for a, b, data in graph.edges(data=True)}
        cites, by = edges["paper:y", "paper:x"], edges["paper:x", "author:ann"]
        assert {name: cites[name] for name in ("weight", "time")} == {"weight": 3.0, "time": 2001.0}
        assert by["time"] == 5.0
        assert "weight" not in by
        assert graph.nodes["author:ann"]["born"] == "1950.5"
        assert "year" not in graph.nodes["paper:y"]
