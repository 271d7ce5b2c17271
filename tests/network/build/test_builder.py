"""Builds: every format alike, exactly what went in, and nothing left behind by one that fails."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heterformer.errors import InputError
from heterformer.network.adjacency import Adjacency
from heterformer.network.build import build_network
from heterformer.network.spec import NetworkSpec
from heterformer.network.store import Network
from tests.networks import Facts, Tables, edges_of, few, files, networks, nodes_of

FORMATS = [f".{name}{packed}" for name in ("csv", "tsv", "jsonl", "parquet") for packed in ("", ".gz")]

TWEETS = [
    {"id": "t1", "body": 'so "good",\nreally', "tags": ["food", "fun"], "user": "ann", "at": "p1"},
    {"id": "t2", "body": "größer 🙂 ", "tags": ["fun"], "user": "bob", "at": None},
    {"id": "t3", "body": None, "tags": [], "user": None, "at": "p2"},
]
PLACES = [{"id": 1, "about": "a tavern", "city": "Oslo"}, {"id": 2, "about": "a park", "city": None}]
ANSWERS = [{"from": "t2", "to": "t1"}, {"from": "t3", "to": "t1"}, {"from": "t1", "to": "t3"}]
VISITS = [{"tweet": "t1", "place": 1}, {"tweet": "t3", "place": 2}]


def tweet_spec(ending: str) -> dict[str, Any]:
    """Two text-rich types with tables, two textless ones without; relations of every kind."""
    return {
        "nodes": {
            "tweet": {"file": f"tweets{ending}", "text": "body", "label": "tags", "separator": ";"},
            "place": {"file": f"places{ending}", "text": "about", "keep": ["city"]},
            "user": None,
            "tag": None,
        },
        "relations": {
            "answers": {
                "from": "tweet",
                "to": "tweet",
                "file": f"answers{ending}",
                "columns": ["from", "to"],
            },
            "visits": {
                "from": "tweet",
                "to": "place",
                "file": f"visits{ending}",
                "columns": ["tweet", "place"],
            },
            "by": {"from": "tweet", "to": "user", "column": "user"},
            "tagged": {"from": "tweet", "to": "tag", "column": "tags", "separator": ";"},
        },
        "predict": "answers",
    }


@pytest.mark.parametrize("ending", FORMATS)
def test_every_format_gives_the_same_network(ending: str, tables: Tables) -> None:
    content = {"tweets": TWEETS, "places": PLACES, "answers": ANSWERS, "visits": VISITS}
    for name, rows in content.items():
        tables.write(f"{name}{ending}", rows)
    tables.spec = tweet_spec(ending)
    network = tables.build()
    assert network.schema.text_rich == ("tweet", "place")
    assert nodes_of(network, "tweet") == {
        "t1": {"text": 'so "good",\nreally', "label": ["food", "fun"]},
        "t2": {"text": "größer 🙂", "label": ["fun"]},
        "t3": {"text": "", "label": []},
    }
    assert nodes_of(network, "place") == {
        "1": {"text": "a tavern", "city": "Oslo"},
        "2": {"text": "a park", "city": None},
    }
    assert (network.ids("user"), network.ids("tag")) == (["ann", "bob"], ["food", "fun"])
    assert edges_of(network, "answers") == [("t1", "t3"), ("t2", "t1"), ("t3", "t1")]
    assert edges_of(network, "visits") == [("t1", "1"), ("t3", "2")]
    assert edges_of(network, "by") == [("t1", "ann"), ("t2", "bob")]
    assert edges_of(network, "tagged") == [("t1", "food"), ("t1", "fun"), ("t2", "fun")]


@st.composite
def with_odd_contents(draw: st.DrawFn) -> Facts:
    """Random networks whose query nodes have any texts, labels and times."""
    facts = draw(networks())
    query = facts.predicted.source
    count = len(facts.ids[query])
    text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
    label = st.lists(st.sampled_from(["AI", "DB", "論"]), unique=True, max_size=2)
    columns = {
        "label": draw(st.lists(label, min_size=count, max_size=count)),
        "time": draw(st.lists(st.none() | st.integers(1900, 2100), min_size=count, max_size=count)),
    }
    texts = ["word", *draw(st.lists(text, min_size=count - 1, max_size=count - 1))]
    return replace(facts, texts={**facts.texts, query: texts}, more=columns)


@few
@given(with_odd_contents())
def test_a_built_network_returns_exactly_what_went_in(facts: Facts) -> None:
    with facts.built() as network:
        query = facts.predicted.source
        for node_type, ids in facts.ids.items():
            if node_type in facts.tableless:
                assert sorted(network.ids(node_type)) == sorted(ids)
            else:
                assert network.ids(node_type) == ids
        for node_type, texts in facts.texts.items():
            assert network.texts(node_type) == [stripped(t) for t in texts]
        for relation in facts.relations:
            edges = edges_of(network, relation.name)
            assert (len(edges), set(edges)) == (len(facts.edges(relation)), facts.edges(relation))
        assert network.labels(query).to_list() == facts.more["label"]
        times = [np.nan if t is None else t for t in facts.more["time"]]
        np.testing.assert_array_equal(network.times(query), np.array(times, dtype=float))
        for center in network.schema.node_types:
            for row, name in enumerate(network.ids(center)):
                assert stored_around(network, center, row) == facts.around((center, name))


def stripped(text: str) -> str:
    """Without white space at the ends, of which Python knows four characters more than Unicode does."""
    return text.strip(
        "".join(c for c in map(chr, range(0x3001)) if c.isspace() and c not in "\x1c\x1d\x1e\x1f")
    )


def stored_around(network: Network, center: str, row: int) -> set[Any]:
    found = set()
    for neighbor_type in network.schema.neighbor_types_of(center):
        adjacency, ids = network.adjacency(center, neighbor_type), network.ids(neighbor_type)
        for entry in range(adjacency.indptr[row], adjacency.indptr[row + 1]):
            edge_type = network.schema.edge_types[adjacency.edge_type[entry]]
            found.add((edge_type, ids[adjacency.neighbor[entry]]))
    return found


def test_equal_tables_give_equal_networks(tables: Tables) -> None:
    first = tables.build()
    tables.out = tables.folder / "second"
    assert tables.build().fingerprint == first.fingerprint
    tables.write("cites.csv", "source,target\np1,p2\n")
    tables.out = tables.folder / "third"
    assert tables.build().fingerprint != first.fingerprint


def test_a_network_is_an_ordinary_folder_in_new_folders_if_need_be(tables: Tables) -> None:
    tables.out = tables.folder / "deep" / "down" / "network"
    mask = os.umask(0)
    os.umask(mask)
    assert tables.build().path.stat().st_mode & 0o777 == 0o777 & ~mask
    assert files(tables.out.parent) == {f"network/{name}" for name in files(tables.out)} | {"network"}


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_an_output_that_exists_is_left_alone(kind: str, tables: Tables) -> None:
    if kind == "folder":
        tables.out.mkdir()
    else:
        tables.out.write_text("mine")
    assert tables.complaint() == "network: exists already; remove it or choose another name."


def test_a_missing_file(tables: Tables) -> None:
    (tables.folder / "cites.csv").unlink()
    assert tables.complaint() == "cites.csv: no such file."
    tables.paper["file"] = "papers"
    (tables.folder / "papers").mkdir()
    assert tables.complaint() == "papers: is a folder, expected a file."


@pytest.mark.parametrize(("name", "ending"), [("papers.xlsx", ".xlsx"), ("papers.gz", ""), ("papers", "")])
def test_a_format_that_is_not_known(name: str, ending: str, tables: Tables) -> None:
    tables.papers(name, b"")
    assert tables.complaint() == (
        f"{name}: unknown file extension {ending!r}, "
        "expected one of .csv, .tsv, .jsonl, .ndjson, .json, .parquet, each also with .gz."
    )


def test_a_type_that_nothing_names(tables: Tables) -> None:
    tables.spec["nodes"]["author"] = None
    assert tables.complaint() == (
        "the specification: node type 'author' has no nodes; its table is empty or no relation names any."
    )


def full(*_: Any, **__: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def interrupted(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


PLACES_TO_FAIL = [(np, "save"), (pa.ipc, "new_file"), (Path, "write_text"), (os, "rename")]


@pytest.mark.parametrize(("module", "name"), PLACES_TO_FAIL, ids=[name for _, name in PLACES_TO_FAIL])
def test_a_full_disk_leaves_nothing_behind(
    module: Any, name: str, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, name, full)
    assert tables.complaint() == (
        "network: could not be written (No space left on device); nothing was left behind."
    )


@pytest.mark.parametrize(("module", "name"), PLACES_TO_FAIL, ids=[name for _, name in PLACES_TO_FAIL])
def test_an_interrupt_leaves_nothing_behind(
    module: Any, name: str, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = files(tables.folder)
    monkeypatch.setattr(module, name, interrupted)
    with pytest.raises(KeyboardInterrupt):
        tables.build()
    assert files(tables.folder) == before


def test_an_interrupt_between_two_arrays_leaves_nothing_behind(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    save, saved = Adjacency.save, []

    def save_then_stop(self: Adjacency, folder: Path) -> None:
        save(self, folder)
        saved.extend(folder.iterdir())
        raise KeyboardInterrupt

    before = files(tables.folder)
    monkeypatch.setattr(Adjacency, "save", save_then_stop)
    with pytest.raises(KeyboardInterrupt):
        tables.build()
    assert len(saved) == 3
    assert files(tables.folder) == before


def test_an_output_that_cannot_be_made(tables: Tables) -> None:
    tables.out = tables.folder / "papers.csv" / "network"
    assert tables.complaint().startswith("papers.csv/network: could not be written (")


def test_a_failed_build_leaves_no_new_parent_folders(tables: Tables) -> None:
    tables.out = tables.folder / "deep" / "down" / "network"
    tables.write("cites.csv", "source,target\nx,y\n")
    assert tables.complaint().startswith("cites.csv: all rows of relation 'cites' are dropped")


DATA = Path(os.environ.get("HETERFORMER_TEST_DATA", ""))  # a folder of files for each
EXAMPLES = Path(__file__).parents[3] / "examples"
REAL = {
    "aan": (
        {"paper": 16_586, "author": 12_971, "venue": 256},
        {"cites": 94_921},
        None,
    ),
    "peerread": (
        {"paper": 12_142, "work": 32_601},
        {"cites": 25_203, "cites_work": 154_126},
        11_710,
    ),
}


@pytest.mark.parametrize("name", REAL)
def test_the_real_networks_have_the_counts_of_their_description(name: str, tmp_path: Path) -> None:
    if not (DATA / name).is_dir():
        pytest.skip("HETERFORMER_TEST_DATA names no folder with its files")
    nodes, edges, labelled = REAL[name]
    network = build_network(NetworkSpec.load(EXAMPLES / f"{name}.yaml"), tmp_path / name, data=DATA / name)
    counts = network.schema.counts
    assert {t: counts[t] for t in nodes} == nodes
    assert {r: len(network.edges(r)[0]) for r in edges} == edges
    if labelled is not None:
        assert int((network.labels("paper").list.len() > 0).sum()) == labelled


def test_a_specification_names_itself_in_complaints(tables: Tables) -> None:
    tables.spec["nodes"]["author"] = None
    spec = NetworkSpec.load(tables.write_spec())
    with pytest.raises(InputError, match=r"network\.yaml: node type 'author' has no nodes"):
        build_network(spec, tables.out, data=tables.folder)
