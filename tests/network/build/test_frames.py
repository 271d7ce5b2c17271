"""Networks from frames in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest

from heterformer import InputError, Network
from tests.networks import Tables, edges_of, nodes_of

SPEC: dict[str, Any] = {
    "nodes": {"paper": {"text": "title", "label": "topics"}, "author": None},
    "relations": {
        "cites": {"from": "paper", "to": "paper", "columns": ["a", "b"]},
        "by": {"from": "paper", "to": "author", "column": "authors"},
    },
}
PAPERS: dict[str, Any] = {
    "id": [1, 2, 3],
    "title": ["A", "B", None],
    "topics": [["x"], ["x", "y"], []],
    "authors": [["ann"], [], ["bob", "ann"]],
}
CITES = {"a": [1, 2, 3], "b": [2, 3, 1]}


@pytest.mark.parametrize("frame", [pl.DataFrame, pd.DataFrame, dict])
def test_polars_pandas_and_dicts_give_the_same_network(frame: Any) -> None:
    network = Network.from_frames(SPEC, {"paper": frame(PAPERS)}, {"cites": frame(CITES)})
    assert nodes_of(network, "paper") == {
        "1": {"text": "A", "label": ["x"]},
        "2": {"text": "B", "label": ["x", "y"]},
        "3": {"text": "", "label": []},
    }
    assert edges_of(network, "cites") == [("1", "2"), ("2", "3"), ("3", "1")]
    assert sorted(edges_of(network, "by")) == [("1", "ann"), ("3", "ann"), ("3", "bob")]


def test_a_network_from_frames_can_be_kept(tmp_path: Path) -> None:
    network = Network.from_frames(SPEC, {"paper": PAPERS}, {"cites": CITES}, out=tmp_path / "kept")
    assert Network.open(tmp_path / "kept").fingerprint == network.fingerprint


def test_a_frame_may_take_the_place_of_one_file_among_others(tables: Tables) -> None:
    tables.cites["file"] = str(tables.folder / "cites.csv")
    network = Network.from_frames(tables.spec, {"paper": {"id": ["p1", "p2"], "title": ["A", "B"]}})
    assert edges_of(network, "cites") == [("p1", "p2")]
    assert network.report.relations["cites"].dropped["unknown paper"].count == 2


def test_a_complaint_names_the_frame() -> None:
    papers = {**PAPERS, "id": [1, 2, 2]}
    with pytest.raises(InputError) as caught:
        Network.from_frames(SPEC, {"paper": papers}, {"cites": CITES})
    assert str(caught.value) == (
        "the paper frame: column 'id': duplicate id '2' in row 3 (first seen in row 2); "
        "expected one row per node."
    )


@pytest.mark.parametrize(
    ("frames", "what"),
    [
        (({"work": PAPERS}, {}), "node type 'work'"),
        (({"paper": PAPERS}, {"likes": CITES}), "relation 'likes'"),
    ],
)
def test_a_frame_that_the_specification_does_not_ask_for(frames: Any, what: str) -> None:
    with pytest.raises(InputError) as caught:
        Network.from_frames(SPEC, *frames)
    assert str(caught.value).startswith(f"found a frame for the unknown {what}, the specification has '")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("network.yaml", {"paper": PAPERS}),
            "the specification: found str, expected a dict of the keys",
        ),
        ((None, {"paper": PAPERS}), "the specification: found NoneType, expected a dict"),
        ((SPEC, [pd.DataFrame(PAPERS)]), "nodes: found list, expected a dict of frames by name."),
        ((SPEC, pd.DataFrame(PAPERS)), "nodes: found DataFrame, expected a dict of frames by name."),
        ((SPEC, {"paper": PAPERS}, pd.DataFrame(CITES)), "relations: found DataFrame, expected a dict of"),
    ],
)
def test_an_argument_in_the_wrong_place(arguments: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        Network.from_frames(*arguments)
    assert str(caught.value).startswith(message)


def test_nothing_is_dropped_in_silence(capsys: pytest.CaptureFixture[str]) -> None:
    cites = {"a": ["1", "2", "1", "1"], "b": ["2", "9", "1", "nan"]}
    network = Network.from_frames(SPEC, {"paper": PAPERS}, {"cites": cites})
    assert capsys.readouterr().err.splitlines() == [
        "node paper: 3 rows read, 3 kept: kept 1: empty text (3); kept 1: no label (3)",
        "relation cites: 4 rows read, 1 kept: dropped 1: missing id written 'nan' (1 -> nan); "
        "dropped 1: unknown paper (2 -> 9); dropped 1: self-loop (1 -> 1)",
    ]
    assert network.report.relations["cites"].dropped["self-loop"].count == 1


def test_a_sound_network_is_built_without_a_word(capsys: pytest.CaptureFixture[str]) -> None:
    papers = {**PAPERS, "title": ["A", "B", "C"], "topics": [["x"]] * 3}
    Network.from_frames(SPEC, {"paper": papers}, {"cites": CITES})
    assert capsys.readouterr() == ("", "")
