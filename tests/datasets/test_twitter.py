"""Twitter from raw files of the published shape, with everything odd that such files may hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from heterformer.datasets.raw_build import DatasetBuild
from heterformer.datasets.twitter import PUBLISHED, build_twitter
from heterformer.errors import InputError
from heterformer.network.split.draw import make_split
from tests.datasets.raw import dropped, in_small_chunks, write_lines
from tests.networks import edges_of, files, nodes_of

PIER = {"poi_id": "p1", "poi_text": "Santa Monica Pier", "label": "Outdoors"}
LOS_ANGELES: list[dict[str, Any]] = [
    {
        "tweet_id": "1",
        "tweet_text": 'Sunset 🌅 at the "pier"',
        "author_id": "u1",
        **PIER,
        "tags": ["sunset", "LA", "sunset", ""],
        "mentions": ["bob"],
    },
    {"tweet_id": "2", "tweet_text": "", "author_id": "", **PIER, "tags": [], "mentions": []},
    {"tweet_id": "3", "tweet_text": "Nowhere", "author_id": "u1", "poi_id": "", "tags": ["lost"]},
    {"tweet_id": "4", "tweet_text": "Tacos", "poi_id": "p2", "poi_text": "", "label": None, "tags": ""},
    {"tweet_text": "No id", **PIER},
]
NEW_YORK: list[dict[str, Any]] = [
    {"tweet_id": "1", "tweet_text": "Met before", "author_id": "u9", **PIER, "tags": ["again"]},
    {
        "tweet_id": 5,  # a number where the others are text
        "tweet_text": "Más tacos",
        "author_id": "u2",
        "poi_id": "p2",
        "poi_text": "Taco truck",
        "label": "Food",
        "tags": ["LA"],
        "mentions": ["bob", "eve"],
    },
    {"tweet_id": "6", "tweet_text": "Pier?", "poi_id": "p1", "poi_text": "Some other pier", "label": "Sea"},
]


def built(folder: Path) -> DatasetBuild:
    write_lines(folder / "tweets-la.json", LOS_ANGELES)
    write_lines(folder / "tweets-ny.json", NEW_YORK)
    return build_twitter(folder, folder / "net")


def test_nodes_edges_and_labels(tmp_path: Path) -> None:
    network = built(tmp_path).network
    assert nodes_of(network, "tweet") == {
        "1": {"text": 'Sunset 🌅 at the "pier"'},
        "2": {"text": ""},
        "4": {"text": "Tacos"},
        "5": {"text": "Más tacos"},
        "6": {"text": "Pier?"},
    }
    assert nodes_of(network, "poi") == {
        "p1": {"text": "Santa Monica Pier", "label": ["Outdoors"]},
        "p2": {"text": "Taco truck", "label": ["Food"]},
    }
    tweets = [("p1", "1"), ("p1", "2"), ("p1", "6"), ("p2", "4"), ("p2", "5")]
    assert edges_of(network, "place_of") == tweets
    assert edges_of(network, "tagged") == [("1", "sunset"), ("1", "LA"), ("5", "LA")]
    assert edges_of(network, "posted_by") == [("1", "u1"), ("5", "u2")]
    assert edges_of(network, "mentions") == [("1", "bob"), ("5", "bob"), ("5", "eve")]
    assert network.label_kinds == {"poi": "single"}


def test_what_was_left_out_is_counted(tmp_path: Path) -> None:
    assert dropped(built(tmp_path)) == {
        "tweets-la.json": {"no tweet_id": (1, ["null"]), "no place": (1, ["3"])},
        "tweets-ny.json": {"duplicate tweet_id": (1, ["1"])},
    }


def test_the_papers_settings_are_the_networks_defaults(tmp_path: Path) -> None:
    schema = built(tmp_path).network.schema
    assert set(schema.text_rich) == {"tweet", "poi"}
    assert (schema.predicted[0].source, schema.predicted[0].target) == ("poi", "tweet")
    assert schema.neighbors == {"poi": 0, "tweet": 6, "hashtag": 3, "user": 1, "mention": 2}
    assert (schema.max_tokens, schema.test_batch_size) == (12, 300)
    assert set(PUBLISHED) == {*schema.node_types, *(r.name for r in schema.relations)}


def test_every_place_is_asked_for_one_of_its_tweets(tmp_path: Path) -> None:
    more = [{"tweet_id": f"x{i}", "tweet_text": "x", "poi_id": f"y{i % 10}"} for i in range(30)]
    write_lines(tmp_path / "tweets-la.json", LOS_ANGELES)
    write_lines(tmp_path / "tweets-ny.json", [*NEW_YORK, *more])
    network = build_twitter(tmp_path, tmp_path / "net").network
    split = make_split(network)
    queries = [*split.train[:, 0], *split.validation[:, 0], *split.test[:, 0]]
    assert sorted(queries) == list(range(network.schema.counts["poi"]))


def test_tiny_chunks_give_the_same_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "again").mkdir()
    whole = built(tmp_path).network
    sizes = in_small_chunks(monkeypatch, 1)
    assert built(tmp_path / "again").network.fingerprint == whole.fingerprint
    assert sizes == [1] * 8


def test_a_truncated_last_line_is_one_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    write_lines(tmp_path / "tweets-la.json", LOS_ANGELES)
    raw = write_lines(tmp_path / "tweets-ny.json", NEW_YORK)
    raw.write_bytes(raw.read_bytes()[:-20])
    before = files(tmp_path)
    with pytest.raises(
        InputError, match=r"tweets-ny\.json: line 3: the last record has no end: the file is truncated"
    ):
        build_twitter(tmp_path, tmp_path / "net")
    assert files(tmp_path) == before


def test_a_missing_file_is_told_with_its_place(tmp_path: Path) -> None:
    write_lines(tmp_path / "tweets-la.json", LOS_ANGELES)
    with pytest.raises(InputError, match=r"no tweets-ny\.json; download from https://drive\.google\.com/"):
        build_twitter(tmp_path, tmp_path / "net")
