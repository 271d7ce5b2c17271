"""The split of a run on a network that has changed since."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from heterformer.network.split.draw import make_split
from heterformer.network.split.options import SplitOptions
from heterformer.network.split.other_network import on_other_network
from heterformer.network.split.split import PARTS, Split
from heterformer.network.store import Network
from tests.embedding.growing import State, first_state


@pytest.fixture(scope="module")
def before() -> State:
    return first_state()


@pytest.fixture(scope="module")
def stored(before: State, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path, network = tmp_path_factory.mktemp("split") / "split.parquet", before.built()
    make_split(network, SplitOptions(hold_out=0.05, also="written_by")).save(path, network)
    return path


def ids(network: Network, pairs: np.ndarray) -> list[tuple[str, str]]:
    names = network.ids("paper")
    return [(names[query], names[key]) for query, key in pairs]


def test_the_same_network_has_the_same_split(before: State, stored: Path) -> None:
    network = before.built()
    same, expected = on_other_network(stored, network, {}, seed=0), Split.open(stored, network)
    assert same[1] == []
    for part in PARTS:
        assert np.array_equal(getattr(same[0], part), getattr(expected, part))
    assert np.array_equal(same[0].hidden["paper"], np.sort(expected.hidden["paper"]))
    assert np.array_equal(same[0].others["written_by"], expected.others["written_by"])
    assert len(same[0].first.new) == 0


def test_pairs_of_new_nodes_are_a_part_of_their_own(before: State, stored: Path) -> None:
    papers = list(before.titles)
    later = before.with_paper("new-1", "a title", papers[:3], ["New Author"], "New Venue")
    network = later.with_paper("new-2", "another", ["new-1"], ["New Author"], "New Venue").built()
    new = {"paper": network.rows("paper", ["new-1", "new-2"])}
    split, lost = on_other_network(stored, network, new, seed=0)
    assert lost == []
    own = Split.open(stored, before.built())
    for part in PARTS:
        assert ids(network, getattr(split, part)) == ids(before.built(), getattr(own, part))
    pairs = dict(ids(network, split.first.new))
    assert pairs["new-1"] in papers[:3]
    assert pairs["new-2"] == "new-1"
    assert set(pairs) == {"new-1", "new-2"}
    held_out = {tuple(pair) for pair in split.held_out}
    assert {tuple(pair) for pair in split.first.new} <= held_out  # so that no neighbourhood shows them
    assert len(split.hidden["paper"]) == len(own.hidden["paper"]) + 2


def test_pairs_without_their_node_or_edge_are_named(before: State, stored: Path, tmp_path: Path) -> None:
    network = before.built()
    table = pl.read_parquet(stored)
    first = table.filter(pl.col("part") == "test").row(0, named=True)
    unlinked = {"part": "test", "query": first["key"], "key": first["query"], "relation": None}
    strangers = [
        {"part": "train", "query": "gone", "key": first["key"], "relation": None},
        {"part": "test", "query": first["query"], "key": "nobody", "relation": "written_by"},
        {"part": "hidden", "query": "gone", "key": "paper", "relation": None},
    ]
    changed = pl.concat([table, pl.DataFrame([unlinked, *strangers], schema=table.schema)])
    changed.write_parquet(tmp_path / "split.parquet")
    split, lost = on_other_network(tmp_path / "split.parquet", network, {}, seed=0)
    counts = table.filter(pl.col("relation").is_null())["part"].value_counts()
    sizes = dict(counts.iter_rows())
    gone = "are gone from the network, such as"
    assert lost[0] == (
        f"cites: 1 of {sizes['train'] + 1} train pairs {gone} 'gone' to {first['key']!r}; they are left out."
    )
    assert lost[1].startswith(f"cites: 1 of {sizes['test'] + 1} test pairs {gone} {first['key']!r} to ")
    assert lost[2].startswith("written_by: 1 of ")
    assert len(lost) == 3
    expected = Split.open(stored, network)
    assert np.array_equal(split.test, expected.test)
    assert np.array_equal(split.others["written_by"], expected.others["written_by"])
