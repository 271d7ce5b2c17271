from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from heterformer.errors import InputError
from heterformer.maps.coloring import NONE_CODE, OTHER_CODE, color_by, color_choices
from heterformer.network.store import Network

PAPERS = 40
TYPES = ("paper", "author")


@pytest.fixture(scope="module")
def network() -> Network:
    """Papers with a label, a number, words and lists of them; authors with nothing."""
    ids = [f"p{i}" for i in range(PAPERS)]
    frame = pl.DataFrame(
        {
            "id": ids,
            "title": [f"title {i}" for i in ids],
            "field": [f"f{i % 10}" if i else None for i in range(PAPERS)],
            "pages": [None if i == 3 else i for i in range(PAPERS)],
            "same": [7] * PAPERS,
            "language": ["en" if i % 2 else "de" for i in range(PAPERS)],
        }
    )
    spec = {
        "name": "colours",
        "nodes": {
            "paper": {"id": "id", "text": ["title"], "label": "field", "keep": ["pages", "same", "language"]},
            "author": {},
        },
        "relations": {
            "cites": {"from": "paper", "to": "paper", "columns": ["a", "b"]},
            "written_by": {"from": "paper", "to": "author", "columns": ["a", "b"]},
        },
    }
    cites = pl.DataFrame({"a": ids[1:], "b": ids[:-1]})
    written = pl.DataFrame({"a": ids, "b": [f"a{i % 5}" for i in range(PAPERS)]})
    return Network.from_frames(spec, {"paper": frame}, {"cites": cites, "written_by": written})


def test_what_can_be_coloured_by(network: Network) -> None:
    assert color_choices(network, TYPES) == ("type", "label", "pages", "same", "language")


def test_types(network: Network) -> None:
    colors = color_by(network, TYPES, "type")
    assert colors.codes.tolist() == [0] * PAPERS + [1] * 5
    assert [(key.name, key.nodes) for key in colors.keys] == [("paper", PAPERS), ("author", 5)]
    assert len({key.light for key in colors.keys}) == 2


def test_frequent_labels_have_colours_and_the_rest_is_grey(network: Network) -> None:
    colors = color_by(network, TYPES, "label")
    names = {key.code: key.name for key in colors.keys}
    # f0 has one node less than the others, so it is not among the eight; equal ones go by name.
    assert [names[i] for i in range(8)] == [f"f{i}" for i in range(1, 9)]
    assert (names[OTHER_CODE], names[NONE_CODE]) == ("other", "no value")
    assert colors.codes[0] == NONE_CODE
    assert colors.codes[9] == OTHER_CODE
    assert colors.codes[11] == 0
    assert colors.codes[PAPERS:].tolist() == [4, 0, 1, 2, 3]  # the label that most of their papers have
    assert sum(key.nodes for key in colors.keys) == PAPERS + 5


def test_numbers_are_divided_into_equal_parts(network: Network) -> None:
    colors = color_by(network, TYPES, "pages")
    assert colors.kind == "numbers"
    papers = np.delete(colors.codes[:PAPERS], 3)
    assert (np.diff(papers.astype(int)) >= 0).all()
    counts = [key.nodes for key in colors.keys if key.code != NONE_CODE]
    assert len(counts) == 8
    assert max(counts) - min(counts) <= 1
    assert colors.keys[0].name.startswith("0 to ")
    assert colors.codes[3] == NONE_CODE


def test_one_number_is_one_colour(network: Network) -> None:
    (key, none) = color_by(network, TYPES, "same").keys
    assert (key.name, key.nodes, none.code) == ("7", PAPERS, NONE_CODE)


def test_words(network: Network) -> None:
    keys = color_by(network, TYPES, "language").keys
    assert [(key.name, key.nodes) for key in keys] == [("de", 20), ("en", 20), ("no value", 5)]


def test_an_unknown_column_is_refused(network: Network) -> None:
    with pytest.raises(InputError, match="no column 'year' to colour by, expected one of type, label"):
        color_by(network, TYPES, "year")
