"""Splits: disjoint, reproducible, one true pair per query, and nothing of what is hidden."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heterformer.errors import InputError
from heterformer.network.split.draw import make_split
from heterformer.network.split.options import SplitOptions
from heterformer.network.split.split import PARTS, Split
from heterformer.network.store import Network
from tests.learning import tiny_network
from tests.networks import Facts, few, networks, pairs_of, split_of

SEEDS = st.integers(0, 5)


def ring(count: int, **columns: list[Any]) -> Network:
    """Each paper cites the next ten: as many queries as papers."""
    ids = [str(i) for i in range(count)]
    cites = {
        "a": [i for i in ids for _ in range(10)],
        "b": [ids[(int(i) + d) % count] for i in ids for d in range(1, 11)],
    }
    node = {"text": "text", **{name: name for name in columns}}
    return Network.from_frames(
        {
            "nodes": {"paper": node},
            "relations": {"cites": {"from": "paper", "to": "paper", "columns": ["a", "b"]}},
        },
        {"paper": {"id": ids, "text": ["word"] * count, **columns}},
        {"cites": cites},
    )


@pytest.fixture(scope="module")
def thousand() -> Network:
    return ring(1000)


@st.composite
def options(draw: st.DrawFn) -> SplitOptions:
    train, validation = draw(st.sampled_from([(0.7, 0.1), (0.5, 0.25), (0.4, 0.4)]))
    return SplitOptions(
        train=train, validation=validation, hold_out=draw(st.sampled_from([0.0, 0.2, 0.29])), seed=draw(SEEDS)
    )


def assert_sound(split: Split, network: Network, facts: Facts) -> None:
    """What holds for every split, however it was made."""
    pairs = {part: pairs_of(network, getattr(split, part)) for part in PARTS}
    every = [pair for part in PARTS for pair in pairs[part]]
    queries = [query for query, _ in every]
    assert len(queries) == len(set(queries)), "two pairs for one query"
    assert set(every) <= facts.edges(facts.predicted), "a pair that is not an edge"
    homogeneous = facts.predicted.source == facts.predicted.target
    unordered = {p: {frozenset(x) if homogeneous else x for x in pairs[p]} for p in PARTS}
    assert not unordered["train"] & unordered["validation"]
    assert not unordered["train"] & unordered["test"]
    assert not unordered["validation"] & unordered["test"]
    hidden = {t: set(network.ids(t, rows)) for t, rows in split.hidden.items()}
    for query, key in pairs["train"]:
        assert query not in hidden.get(facts.predicted.source, ())
        assert key not in hidden.get(facts.predicted.target, ())


@few
@given(networks(), options())
def test_parts_are_disjoint_and_hold_one_true_pair_per_query(facts: Facts, chosen: SplitOptions) -> None:
    with facts.built() as network:
        split = split_of(network, chosen)
        assert_sound(split, network, facts)
        for rows in split.hidden.values():
            assert set(rows) <= set(split.test[:, 0])
        again = make_split(network, chosen)
        for part in PARTS:
            np.testing.assert_array_equal(getattr(again, part), getattr(split, part))
        assert {t: r.tolist() for t, r in again.hidden.items()} == {
            t: r.tolist() for t, r in split.hidden.items()
        }


@few
@given(networks(), st.data())
def test_a_time_split_trains_on_the_past_and_hides_the_rest(facts: Facts, data: st.DataObject) -> None:
    query = facts.predicted.source
    count = len(facts.ids[query])
    years = data.draw(st.lists(st.none() | st.integers(2000, 2012), min_size=count, max_size=count))
    with replace(facts, more={"time": years}).built() as network:
        split = split_of(network, SplitOptions(by="time", seed=data.draw(SEEDS)))
        assert_sound(split, network, facts)
        time = np.nan_to_num(network.times(query), nan=-np.inf)
        train, validation, test = (time[getattr(split, part)[:, 0]] for part in PARTS)
        assert train.max() < validation.min()
        assert validation.max() < test.min()
        hidden = set(split.hidden[query].tolist())
        assert set(split.held_out[:, 0].tolist()) <= hidden
        if hidden:
            assert hidden == set(np.flatnonzero(time >= min(time[list(hidden)])).tolist())


@few
@given(networks(), SEEDS)
def test_where_edges_have_times_a_time_split_divides_edges(facts: Facts, seed: int) -> None:
    rng = np.random.default_rng(seed)
    edges = facts.relations[facts.predicted]
    times = rng.permutation(len(edges)).astype(float).tolist()
    with replace(facts, edge_values={facts.predict: {"time": times}}).built() as network:
        split = split_of(network, SplitOptions(by="time", seed=seed))
        assert split.hidden == {}
        assert split.times is not None
        when = dict(zip(edges, times, strict=True))
        for part, (low, high) in zip(
            PARTS, zip((-np.inf, *split.times), (*split.times, np.inf), strict=True), strict=True
        ):
            pairs = pairs_of(network, getattr(split, part))
            assert all(low <= when[pair] < high for pair in pairs)
            assert len({query for query, _ in pairs}) == len(pairs)
            asked = {query for (query, key), time in when.items() if low <= time < high}
            assert {query for query, _ in pairs} <= asked


def test_a_stored_time_split_keeps_its_cuts(tmp_path: Path) -> None:
    network = ring(20, time=[2000.0 + i for i in range(20)])
    split = make_split(network, SplitOptions(by="time"))
    assert split.times == (2014.0, 2016.0)
    split.save(tmp_path / "split.parquet", network)
    assert Split.open(tmp_path / "split.parquet", network).times == split.times
    make_split(network).save(tmp_path / "random.parquet", network)
    assert Split.open(tmp_path / "random.parquet", network).times is None


@few
@given(networks(), st.data())
def test_a_column_split_follows_the_column(facts: Facts, data: st.DataObject) -> None:
    query = facts.predicted.source
    count = len(facts.ids[query])
    value = st.sampled_from(["train", "val", "test", None])
    column = [*PARTS, *data.draw(st.lists(value, min_size=count - 3, max_size=count - 3))]
    with replace(facts, more={"split": column}).built() as network:
        split = split_of(network, SplitOptions(by="column", seed=data.draw(SEEDS)))
        assert_sound(split, network, facts)
        assert not split.hidden
        stored = network.splits(query)
        for part in PARTS:
            assert set(stored.gather(getattr(split, part)[:, 0])) == {part}


@few
@given(networks(), options())
def test_a_split_is_read_as_it_was_written(facts: Facts, chosen: SplitOptions) -> None:
    with facts.built() as network:
        split = split_of(network, chosen)
        path = network.path / "split.parquet"
        split.save(path, network)
        opened = Split.open(path, network)
        for part in PARTS:
            np.testing.assert_array_equal(getattr(opened, part), getattr(split, part))
        assert {t: r.tolist() for t, r in opened.hidden.items()} == {
            t: r.tolist() for t, r in split.hidden.items()
        }
        assert set(pl.read_parquet(path)["part"]) - {"hidden"} == set(PARTS)


def test_the_default_is_seven_to_one_to_two_over_the_query_nodes(thousand: Network) -> None:
    split = make_split(thousand)
    assert [len(getattr(split, part)) for part in PARTS] == [700, 100, 200]
    assert not split.hidden


def test_held_out_nodes_are_test_queries_and_the_rest_divides_as_asked(thousand: Network) -> None:
    split = make_split(thousand, SplitOptions(hold_out=0.25))
    assert len(split.hidden["paper"]) == len(split.test) == 250
    assert set(split.hidden["paper"]) == set(split.test[:, 0])
    assert abs(len(split.train) / len(split.validation) - 7) < 0.2


def test_another_seed_divides_otherwise(thousand: Network) -> None:
    one, other = (make_split(thousand, SplitOptions(seed=seed)) for seed in (0, 1))
    assert set(map(tuple, one.train)) != set(map(tuple, other.train))
    assert set(one.test[:, 0]) != set(other.test[:, 0])


def test_a_pair_that_is_asked_for_is_not_learnt_the_other_way_round() -> None:
    network = ring(12)
    source, target = (ends.tolist() for ends in network.edges("cites"))
    mutual = set(zip(source, target, strict=True)) & set(zip(target, source, strict=True))
    assert len(mutual) == 12 * 9
    for seed in range(20):
        split = make_split(network, SplitOptions(seed=seed))
        learnt = {frozenset(pair) for pair in split.train.tolist()}
        assert not learnt & {frozenset(pair) for pair in split.held_out.tolist()}


MISTAKES = [
    (
        {"train": 0.9, "validation": 0.1},
        "train is 0.9 and validation 0.1, expected positive shares that leave some for the test.",
    ),
    (
        {"train": 0.0},
        "train is 0.0 and validation 0.1, expected positive shares that leave some for the test.",
    ),
    (
        {"validation": -0.1},
        "train is 0.7 and validation -0.1, expected positive shares that leave some for the test.",
    ),
    ({"hold_out": 0.4}, "hold_out is 0.4, expected at least 0 and less than 0.3 (1 - train)."),
    ({"hold_out": -0.1}, "hold_out is -0.1, expected at least 0 and less than 0.3 (1 - train)."),
    (
        {"hold_out": 0.1, "by": "time"},
        "hold_out applies to a random split only; a time split hides later nodes itself.",
    ),
]


@pytest.mark.parametrize(("values", "message"), MISTAKES)
def test_options_that_cannot_be(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        SplitOptions(**values)
    assert str(caught.value) == message


def complaint(network: Network, **values: Any) -> str:
    with pytest.raises(InputError) as caught:
        make_split(network, SplitOptions(**values))
    return str(caught.value).removeprefix(f"{network.path}: ")


def test_a_part_that_would_be_empty() -> None:
    network = ring(20, time=[2001.0] * 20, split=["train"] * 19 + ["test"])
    rest = "(relation 'cites' has 20 query nodes); choose other shares."
    assert complaint(network, train=0.98, validation=0.01) == f"the validation part is empty {rest}"
    assert complaint(network, by="time") == f"the train part is empty {rest}"
    rest = rest.replace("choose other shares", "check the 'split' column")
    assert complaint(network, by="column") == f"the validation part is empty {rest}"


@pytest.mark.parametrize(("by", "column"), [("time", "time"), ("column", "split")])
def test_a_split_by_a_column_that_is_not_there(by: str, column: str, thousand: Network) -> None:
    expected = f"node type 'paper' has no {column!r} column in its specification."
    assert complaint(thousand, by=by) == expected


@pytest.mark.parametrize("content", [None, b"part,query,key", {"x": [1]}])
def test_a_file_that_is_not_a_split(content: Any, thousand: Network, tmp_path: Path) -> None:
    path = tmp_path / "split.parquet"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content:
        pl.DataFrame(content).write_parquet(path)
    with pytest.raises(InputError) as caught:
        Split.open(path, thousand)
    expected = "expected a Parquet table with the columns part, query and key."
    assert str(caught.value) == f"{path}: not a split, {expected}"


def test_a_place_where_a_split_cannot_be_written(thousand: Network, tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "split.parquet"
    with pytest.raises(InputError, match=r"split\.parquet: the split cannot be written \(No such file"):
        make_split(thousand).save(path, thousand)


def test_a_split_file_of_another_network(thousand: Network, tmp_path: Path) -> None:
    make_split(thousand).save(tmp_path / "split.parquet", thousand)
    with pytest.raises(InputError, match="there is no paper with the id"):
        Split.open(tmp_path / "split.parquet", ring(20))


BAD_SPLITS = {
    "an unknown part": ({"part": ["train", "vali"]}, "column 'part': found 'vali', expected 'train'"),
    "a pair of two parts": (
        {"part": ["train", "test"], "query": ["p0", "p0"], "key": ["p1", "p1"]},
        "'p0', 'p1'",
    ),
    "no edge": (
        {"query": ["p0", "p2"], "key": ["p15", "p3"]},
        "the train pair 'p0', 'p15', expected an edge",
    ),
}


@pytest.mark.parametrize("what", BAD_SPLITS)
def test_a_users_own_table_of_pairs_is_checked(what: str, tmp_path: Path) -> None:
    changes, said = BAD_SPLITS[what]
    columns = {"part": ["train", "train"], "query": ["p0", "p1"], "key": ["p1", "p2"], **changes}
    network = ring(20)
    ids = {f"p{i}": network.ids("paper")[i] for i in range(20)}
    columns = {c: [ids.get(v, v) for v in values] for c, values in columns.items()}
    pl.DataFrame(columns).write_parquet(tmp_path / "split.parquet")
    with pytest.raises(InputError) as caught:
        Split.open(tmp_path / "split.parquet", network)
    for name in ("p15", "p0", "p1"):
        said = said.replace(name, ids[name])
    assert said in str(caught.value)


def test_a_split_is_taken_from_a_file(tmp_path: Path) -> None:
    network = ring(20)
    drawn = make_split(network, SplitOptions(seed=3))
    drawn.save(tmp_path / "split.parquet", network)
    taken = make_split(network, SplitOptions(file=str(tmp_path / "split.parquet")))
    assert all((getattr(taken, part) == getattr(drawn, part)).all() for part in PARTS)


def test_a_negative_seed() -> None:
    with pytest.raises(InputError, match=r"^seed is -1, expected 0 to 9,223,372,036,854,775,807\.$"):
        SplitOptions(seed=-1)


# --- Hidden textless nodes ---------------------------------------------------------------------------------


def test_neighbours_of_held_out_nodes_are_hidden_with_them() -> None:
    academic = tiny_network()
    split = make_split(academic, SplitOptions(hold_out=0.2, hold_out_with="author"))
    hidden = set(split.hidden["paper"].tolist())
    papers, authors = academic.edges("written_by")
    expected = {int(a) for p, a in zip(papers, authors, strict=True) if int(p) in hidden}
    assert set(split.hidden["author"].tolist()) == expected
    assert expected
    without = make_split(academic, SplitOptions(hold_out=0.2))
    assert (without.test == split.test).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"hold_out": 0.2, "hold_out_with": "paper"},
            "is 'paper', expected a type without text: 'author'",
        ),
        ({"hold_out_with": "author"}, "hold_out_with needs hold_out"),
    ],
)
def test_what_cannot_be_hidden_with_them(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_split(tiny_network(), SplitOptions(**options))
