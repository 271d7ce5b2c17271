from __future__ import annotations

import base64
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heterformer.errors import InputError
from heterformer.maps.layout import Layout
from heterformer.search.searcher import Searcher
from heterformer.search.store import MAP
from heterformer.serve.errors import InvalidError, NotFoundError, UnavailableError
from heterformer.serve.map_data import EXTENT, RECORD, MapData
from tests.serve.serving import SECONDS, copied_run, served_run


def ready(data: MapData) -> dict[str, Any]:
    """Its description once it is laid out."""
    end = time.monotonic() + SECONDS
    while (about := data.describe())["status"] == "working":
        assert time.monotonic() < end
        time.sleep(0.05)
    return about


@pytest.fixture(scope="module")
def data() -> MapData:
    data = MapData(Searcher(served_run()))
    assert ready(data)["status"] == "ready"
    return data


def records(data: MapData, *arguments: Any) -> np.ndarray[Any, Any]:
    return np.frombuffer(data.points(*arguments), RECORD)


def test_description(data: MapData) -> None:
    about = data.describe()
    counts = data.network.schema.counts
    assert about["nodes"] == sum(counts.values())
    assert [t["nodes"] for t in about["types"]] == [counts[t["type"]] for t in about["types"]]
    assert about["types"][1]["offset"] == about["types"][0]["nodes"]
    assert about["colors"][:2] == ["type", "label"]
    assert about["regions"]
    assert all(0 <= r["x"] <= EXTENT and 0 <= r["y"] <= EXTENT and r["words"] for r in about["regions"])


def test_points_come_part_by_part_each_once(data: MapData) -> None:
    parts = [records(data, start, 100) for start in range(0, data.nodes + 100, 100)]
    assert len(parts[-1]) == 0 or data.nodes % 100
    numbers = np.concatenate(parts)["node"]
    assert sorted(numbers.tolist()) == list(range(data.nodes))
    assert numbers.tolist() != list(range(data.nodes))  # the first ones are a sample of all
    whole = np.concatenate(parts)
    assert (whole["x"].min(), whole["y"].min()) == (0, 0)
    assert max(whole["x"].max(), whole["y"].max()) == EXTENT


def test_places_are_those_of_the_layout_in_proportion(data: MapData) -> None:
    layout = Layout.open(data._searcher.store)
    assert layout is not None
    places = np.concatenate([layout.places[t] for t in data.types])
    points = records(data, 0, data.nodes)
    sent = np.empty((data.nodes, 2))
    sent[points["node"]] = np.stack([points["x"], points["y"]], 1)
    apart, between = (np.linalg.norm(p[1:] - p[:-1], axis=1) for p in (places, sent))
    assert np.corrcoef(apart, between)[0, 1] == pytest.approx(1, abs=1e-6)


def test_points_of_a_box_after_those_that_are_there_already(data: MapData) -> None:
    everything = records(data, 0, data.nodes)
    box = (1000, 2000, 30_000, 40_000)
    inside = [
        int(point["node"])
        for point in everything[50:]
        if 1000 <= point["x"] <= 30_000 and 2000 <= point["y"] <= 40_000
    ]
    assert records(data, 50, data.nodes, box)["node"].tolist() == inside
    assert inside
    with pytest.raises(InvalidError, match="found 3 numbers"):
        data.points(0, 10, (1, 2, 3))


def test_nodes_are_found_and_named_by_number(data: MapData) -> None:
    wanted = [
        ("paper", "p5"),
        ("author", data.network.ids("author")[3]),
        ("paper", "unknown"),
        ("film", "p5"),
    ]
    first, second, *missing = data.find(wanted)
    assert missing == [None, None]
    assert first is not None
    assert second is not None
    assert data.node(first["number"]).id == "p5"
    named = data.node(second["number"])
    assert (named.node_type, named.id) == wanted[1]
    point = records(data, 0, data.nodes)
    (row,) = point[point["node"] == first["number"]]
    assert (row["x"], row["y"]) == (first["x"], first["y"])
    with pytest.raises(NotFoundError, match="there is no node 99999"):
        data.node(99_999)


def test_a_byte_for_each_number(data: MapData) -> None:
    colors = data.colors("type")
    codes = np.frombuffer(base64.b64decode(colors["codes"]), np.uint8)
    assert len(codes) == data.nodes
    assert {data.node(int(i)).node_type for i in np.flatnonzero(codes == 1)} == {colors["keys"][1]["name"]}
    with pytest.raises(InputError, match="no column 'nonsense'"):
        data.colors("nonsense")


def test_a_failure_is_said_without_paths() -> None:
    run = copied_run("broken")
    searcher = Searcher(run)
    Layout.make(searcher.store)
    (run / "search" / MAP / "layout.json").write_text("{")
    data = MapData(searcher)
    about = ready(data)
    assert about["status"] == "failed"
    assert "damaged" in about["error"]
    assert str(Path(run).parent) not in about["error"]
    with pytest.raises(UnavailableError, match="damaged"):
        data.points(0, 10)
