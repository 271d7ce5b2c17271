"""Node tables: ids, texts, labels, splits, times, names and what is kept for display."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from heterformer.network.store import Network
from tests.networks import Tables, kept

LISTS = [".jsonl", ".parquet"]
ALL = [".csv", ".tsv", *LISTS]


def built(tables: Tables, ending: str, column: str, values: list[Any], **spec: Any) -> Network:
    """Papers p1, p2, ... of which each has one of the values in the column."""
    rows = [{"id": f"p{i}", "title": f"word {i}", column: v} for i, v in enumerate(values, start=1)]
    tables.papers(f"papers{ending}", rows)
    tables.paper.update(spec)
    tables.write("cites.csv", "source,target\np1,p2\n")
    return tables.build()


def test_text_columns_are_joined_and_gaps_left_out(tables: Tables) -> None:
    tables.write("papers.csv", "id,title,abstract\np1,A, B \np2,,C\np3,D,\np4, ,\n")
    tables.paper["text"] = ["title", "abstract"]
    network = tables.build()
    assert network.texts("paper") == ["A  B", "C", "D", ""]
    noted = network.report.nodes["paper"].noted["empty text"]
    assert (noted.count, noted.examples) == (1, ["p4"])


@pytest.mark.parametrize("ending", ALL)
def test_a_single_label(ending: str, tables: Tables) -> None:
    network = built(tables, ending, "topic", ["AI", None, "DB"], label="topic")
    assert network.labels("paper").to_list() == [["AI"], [], ["DB"]]
    assert network.label_kinds == {"paper": "single"}
    noted = network.report.nodes["paper"].noted["no label"]
    assert (noted.count, noted.examples) == (1, ["p2"])


@pytest.mark.parametrize("ending", LISTS)
def test_a_list_of_labels(ending: str, tables: Tables) -> None:
    values = [["AI", None, "DB"], [], None, ["AI", ""]]
    network = built(tables, ending, "topics", values, label="topics")
    assert network.labels("paper").to_list() == [["AI", "DB"], [], [], ["AI"]]
    assert network.label_kinds == {"paper": "multi"}


@pytest.mark.parametrize("ending", ALL)
def test_a_separator_makes_a_list_of_labels(ending: str, tables: Tables) -> None:
    network = built(tables, ending, "topics", ["AI; DB", None, "AI;"], label="topics", separator=";")
    assert network.labels("paper").to_list() == [["AI", "DB"], [], ["AI"]]


@pytest.mark.parametrize("ending", ALL)
def test_labels_may_be_numbers(ending: str, tables: Tables) -> None:
    assert built(tables, ending, "topic", [1, 0], label="topic").labels("paper").to_list() == [["1"], ["0"]]


@pytest.mark.parametrize("ending", ALL)
def test_the_words_for_the_parts_of_a_split(ending: str, tables: Tables) -> None:
    words = ["train", "Validation", " valid", "val", "DEV", "test", None, " "]
    network = built(tables, ending, "part", words, split="part")
    parts = ["train", "validation", "validation", "validation", "validation", "test", None, None]
    assert network.splits("paper").to_list() == parts


@pytest.mark.parametrize("ending", ALL)
def test_another_word_for_a_part(ending: str, tables: Tables) -> None:
    tables.papers(
        f"papers{ending}",
        [{"id": f"p{i}", "title": "word", "part": w} for i, w in enumerate(["train", None, "holdout"])],
    )
    tables.paper["split"] = "part"
    assert tables.complaint() == (
        f"papers{ending}: row 3, column 'part': found 'holdout', "
        "expected 'train', 'validation' or 'test' (or nothing)."
    )


@pytest.mark.parametrize("ending", ALL)
def test_times_in_every_format(ending: str, tables: Tables) -> None:
    network = built(tables, ending, "day", ["2001-01-01", None, "1999"], time="day")
    np.testing.assert_array_equal(network.times("paper"), [2001, np.nan, 1999])
    assert network.report.nodes["paper"].noted["no time"].examples == ["p2"]


@pytest.mark.parametrize("ending", ALL)
def test_a_name_and_attributes_are_kept_for_display(ending: str, tables: Tables) -> None:
    network = built(tables, ending, "venue", ["ACL", None], name="venue", keep=["venue", "title"])
    assert network.attributes("paper") == ("venue", "title")
    assert kept(network, "venue") == ["ACL", None]
    assert kept(network, "title")[1:] == ["word 2"]
    assert network.names("paper", [0]) == ["ACL"]


@pytest.mark.parametrize("ending", LISTS)
def test_a_kept_list_is_shown_with_commas(ending: str, tables: Tables) -> None:
    network = built(tables, ending, "tags", [["a", None, "b"], []], keep=["tags"])
    assert kept(network, "tags") == ["a, b", ""]


@pytest.mark.parametrize("ending", ALL)
@pytest.mark.parametrize("found", [None, " "])
def test_a_missing_id(found: str | None, ending: str, tables: Tables) -> None:
    tables.papers(f"papers{ending}", [{"id": "p1", "title": "A"}, {"id": found, "title": "B"}])
    shown = "nothing" if found is None else repr(found)
    assert tables.complaint() == f"papers{ending}: row 2, column 'id': found {shown}, expected an id."


@pytest.mark.parametrize("ending", ALL)
def test_a_duplicate_id(ending: str, tables: Tables) -> None:
    ids = ["p1", "p2", "p3", "p2", "p1"]
    tables.papers(f"papers{ending}", [{"id": i, "title": "word"} for i in ids])
    assert tables.complaint() == (
        f"papers{ending}: column 'id': duplicate id 'p1' in row 5 (first seen in row 1); "
        "expected one row per node."
    )


def test_a_textless_type_may_have_a_table(tables: Tables) -> None:
    tables.write("authors.csv", "key,name,field\na1,Ann,AI\na2,Bob,DB\n")
    tables.write("by.csv", "paper,author\np1,a2\n")
    node = {"file": "authors.csv", "id": "key", "name": "name", "label": "field"}
    tables.spec["nodes"]["author"] = node
    columns = ["paper", "author"]
    tables.spec["relations"]["by"] = {"from": "paper", "to": "author", "file": "by.csv", "columns": columns}
    network = tables.build()
    assert network.schema.textless == ("author",)
    assert network.names("author") == ["Ann", "Bob"]
    assert network.labels("author").to_list() == [["AI"], ["DB"]]
    assert network.adjacency("author", "paper").degrees.tolist() == [0, 1]
