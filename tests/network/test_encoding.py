"""How attributes are read."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from heterformer import InputError, Network
from heterformer.network.encoding import (
    MOST_LOOKED_UP,
    EncodedColumn,
    TypeEncoding,
    encodings_from_dict,
    encodings_to_dict,
    fitted_encodings,
)

AUTHORS: dict[str, Any] = {
    "id": ["ann", "bob", "cem", "eve"],
    "born": [1950, 1960, None, 1970],
    "prize": [True, False, None, None],
    "country": ["DE", "US", "DE", None],
}
KINDS: Any = {"born": "number", "prize": "boolean", "country": "category"}


def network(**changes: list[Any]) -> Network:
    cites, by = ({"from": "paper", "to": t, "columns": ["a", "b"]} for t in ("paper", "author"))
    nodes = {"paper": {"text": "title"}, "author": {"attributes": KINDS}}
    papers = {"id": ["x", "y"], "title": ["X", "Y"]}
    edges = {"cites": {"a": ["x"], "b": ["y"]}, "by": {"a": ["x"], "b": ["ann"]}}
    spec = {"nodes": nodes, "relations": {"cites": cites, "by": by}}
    return Network.from_frames(spec, {"paper": papers, "author": AUTHORS | changes}, edges)


def test_numbers_are_standardized_and_missing_values_marked() -> None:
    column = EncodedColumn.fitted("born", "number", pl.Series(["1950", "1960", None, "1970"]))
    read = column.numbers(pl.Series(["1960", None, "1970", "1e9"]))
    np.testing.assert_allclose(read[:3], [[0, 1], [0, 0], [1.5**0.5, 1]], rtol=1e-6)
    assert read[3].tolist() == [10.0, 1.0]  # no outlier is further


def test_numbers_that_are_all_equal_or_all_missing() -> None:
    for values in (["5", "5"], [None, None]):
        read = EncodedColumn.fitted("x", "number", pl.Series(values, dtype=pl.String)).numbers(
            pl.Series(values, dtype=pl.String)
        )
        assert np.isfinite(read).all()
        assert not read[:, 0].any()


def test_booleans_are_one_and_minus_one() -> None:
    column = EncodedColumn.fitted("x", "boolean", pl.Series(["true", "false", None]))
    assert column.numbers(pl.Series(["yes", "no", None])).tolist() == [[1, 1], [-1, 1], [0, 0]]


def test_categories_are_looked_up_and_unknown_ones_are_missing() -> None:
    column = EncodedColumn.fitted("x", "category", pl.Series(["b", "a", None, "b"]))
    assert column.places == 3
    assert column.categories(pl.Series(["a", "b", "new", None])).tolist() == [1, 2, 0, 0]


def test_many_categories_are_hashed() -> None:
    values = pl.Series([f"v{i}" for i in range(MOST_LOOKED_UP + 1)])
    column = EncodedColumn.fitted("x", "category", values)
    assert column.values == ()
    places = column.categories(values)
    assert column.places == 1 + MOST_LOOKED_UP
    assert places.min() >= 1
    assert places.max() <= MOST_LOOKED_UP
    assert len(np.unique(places)) > MOST_LOOKED_UP / 2
    assert column.categories(pl.Series(["v7", None, "never seen"]))[:2].tolist() == [places[7], 0]


def test_an_encoding_survives_its_configuration() -> None:
    encodings = fitted_encodings(network(), ("author",))
    assert encodings_from_dict(encodings_to_dict(encodings)) == encodings
    assert fitted_encodings(network(), ()) == {}


def test_hidden_nodes_have_no_part_in_an_encoding() -> None:
    hidden = {"author": np.array([1, 3])}
    seen = fitted_encodings(network(), ("author",), hidden)
    assert seen == fitted_encodings(
        network(born=[1950, 1, None, 7], country=["DE", "X", "DE", "Y"]), ["author"], hidden
    )
    assert seen != fitted_encodings(network(), ("author",))


def test_what_is_read_of_a_network() -> None:
    read = fitted_encodings(network(), ("author",))["author"].read(network(), "author")
    assert read.numbers.shape == (4, 4)
    assert read.categories.tolist() == [[1], [2], [1], [0]]
    assert read.hashes()[0] != read.hashes()[2]
    missing = fitted_encodings(network(), ("author",))["author"].missing(2)
    assert missing.categories.tolist() == [[0], [0]]
    assert not missing.numbers.any()


def test_a_network_without_the_attribute_is_refused() -> None:
    encoding = TypeEncoding((EncodedColumn("height", "number"),))
    with pytest.raises(InputError, match="'author' nodes have no attribute 'height', which the model reads"):
        encoding.read(network(), "author")
