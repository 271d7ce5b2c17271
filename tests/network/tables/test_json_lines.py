"""JSON lines: records with nested lists and records."""

from __future__ import annotations

import json

import numpy as np
import pytest

from heterformer.network.tables import Column
from heterformer.network.tables.json_lines import JsonLinesTable
from tests.network.tables.damage import DAMAGES, damaged_papers
from tests.networks import Tables, edges_of

TWO = [{"id": "p1", "title": "A"}, {"id": "p2", "title": "B"}]


@pytest.fixture
def tables(tables: Tables) -> Tables:
    tables.papers("papers.jsonl", TWO)
    tables.write("cites.csv", "source,target\np1,p2\n")
    return tables


def with_lines(tables: Tables, *lines: str | bytes) -> Tables:
    tables.write("papers.jsonl", b"\n".join(x if isinstance(x, bytes) else x.encode() for x in lines))
    return tables


def with_records(tables: Tables, *records: object) -> Tables:
    return with_lines(tables, *map(json.dumps, records))


def test_whole_numbers_are_ids_as_well(tables: Tables) -> None:
    network = with_records(tables, {"id": 1, "title": "A"}, {"id": 10**20, "title": "B"})
    tables.write("cites.csv", "source,target\n1,100000000000000000000\n")
    assert edges_of(network.build(), "cites") == [("1", "100000000000000000000")]


def test_empty_lines_and_a_byte_order_mark_are_no_records(tables: Tables) -> None:
    with_lines(tables, b"\xef\xbb\xbf" + json.dumps(TWO[0]).encode(), "", "  ", json.dumps(TWO[1]), "")
    assert tables.build().ids("paper") == ["p1", "p2"]


def test_a_key_that_a_record_lacks_is_a_missing_value(tables: Tables) -> None:
    network = with_records(tables, {"id": "p1"}, {"id": "p2", "title": "B"}).build()
    assert network.texts("paper") == ["", "B"]


def test_records_are_read_some_at_a_time(tables: Tables) -> None:
    with_records(tables, *({"id": f"p{i}", "title": f"word {i}"} for i in range(5)))
    table = JsonLinesTable(tables.folder / tables.paper["file"], chunk_rows=2)
    assert [len(chunk) for chunk in table.chunks([Column("id", "id")])] == [2, 2, 1]
    tables.node_tables["paper"] = table
    assert tables.build().texts("paper") == [f"word {i}" for i in range(5)]


def test_a_key_with_a_dot_comes_before_a_path(tables: Tables) -> None:
    tables.paper["text"] = ["meta.title"]
    with_records(
        tables,
        {"id": "p1", "meta.title": "whole key", "meta": {"title": "path"}},
        {"id": "p2", "meta": {"title": "path"}},
    )
    assert tables.build().texts("paper") == ["whole key", "path"]


def test_times_are_numbers_or_dates(tables: Tables) -> None:
    tables.paper["time"] = "when"
    whens = [2001, "1999.5", "2023-01-01", "2023-07-02T10:00:00Z", "01-Jan-2020", None]
    with_records(tables, *({"id": f"p{i}", "title": "A", "when": w} for i, w in enumerate(whens)))
    tables.write("cites.csv", "source,target\np1,p2\n")
    network = tables.build()
    np.testing.assert_allclose(
        network.times("paper"), [2001, 1999.5, 2023, 2023 + (182 + 10 / 24) / 366, 2020, np.nan], atol=1e-9
    )
    assert network.report.nodes["paper"].noted["no time"].examples == ["p5"]


WRONG_VALUES = [
    ({"id": "p1", "title": 7}, "line 2, column 'title': found 7, expected text."),
    ({"id": "p1", "title": ["A"]}, "line 2, column 'title': found [\"A\"], expected text."),
    ({"id": 1.5, "title": "A"}, "line 2, column 'id': found 1.5, expected an id: text or a whole number."),
    (
        {"id": True, "title": "A"},
        "line 2, column 'id': found true, expected an id: text or a whole number.",
    ),
    (
        {"id": {"key": "x" * 80}, "title": "A"},
        f'line 2, column \'id\': found {{"key": "{"x" * 48}..., expected an id: text or a whole number.',
    ),
]


@pytest.mark.parametrize(("record", "message"), WRONG_VALUES)
def test_a_value_of_the_wrong_kind(record: object, message: str, tables: Tables) -> None:
    assert with_records(tables, TWO[1], record).complaint() == f"papers.jsonl: {message}"


@pytest.mark.parametrize("found", ["soon", True, [2001], "2023-99-99"])
def test_a_time_that_is_neither_number_nor_date(found: object, tables: Tables) -> None:
    tables.paper["time"] = "when"
    with_records(tables, {"id": "p1", "title": "A", "when": found})
    assert tables.complaint() == (
        f"papers.jsonl: line 1, column 'when': found {json.dumps(found)}, "
        "expected a number or a date such as 2023-08-06."
    )


def test_a_key_that_all_records_lack(tables: Tables) -> None:
    tables.paper["text"] = ["titel"]
    assert tables.complaint() == "papers.jsonl: no column 'titel', the columns are 'id', 'title'."


def test_a_line_that_does_not_parse(tables: Tables) -> None:
    with_lines(tables, json.dumps(TWO[0]), "", '{"id": "p2", "title": "B"')
    assert tables.complaint() == (
        "papers.jsonl: line 3: not valid JSON at character 26 (Expecting ',' delimiter); "
        "expected one whole object per line, or an array of objects in a .json file."
    )


@pytest.mark.parametrize(("line", "kind"), [('["p1", "A"]', "list"), ('"p1"', "str"), ("null", "NoneType")])
def test_a_line_that_is_not_an_object(line: str, kind: str, tables: Tables) -> None:
    with_lines(tables, json.dumps(TWO[0]), line)
    hint = "; let the name of an array of objects end in .json" if kind == "list" else ""
    problem = f"found {kind}, expected one JSON object per line{hint}"
    assert tables.complaint() == f"papers.jsonl: line 2: {problem}."


def test_bytes_that_are_not_utf8(tables: Tables) -> None:
    with_lines(tables, json.dumps(TWO[0]), b'{"id": "p2", "title": "caf\xe9"}')
    assert tables.complaint() == "papers.jsonl: line 2: byte 27 is not UTF-8."


@pytest.mark.parametrize(
    "line", [r'{"id": "p2", "title": "\ud83d"}', b'{"id": "p2", "title": "\xed\xa0\xbd"}']
)
def test_half_a_surrogate_pair_is_not_text(line: str | bytes, tables: Tables) -> None:
    with_lines(tables, json.dumps(TWO[0]), line)
    assert tables.complaint().startswith("papers.jsonl: line 2")


@pytest.mark.parametrize("line", ['{"id": ' + "9" * 5000 + "}", '{"id": ' + "[" * 100_000])
def test_json_beyond_the_limits_of_the_parser(line: str, tables: Tables) -> None:
    with_lines(tables, json.dumps(TWO[0]), line)
    assert tables.complaint().startswith("papers.jsonl: line 2: not valid JSON")


@pytest.mark.parametrize("what", DAMAGES)
def test_a_broken_gzip_file(what: str, tables: Tables) -> None:
    reason = damaged_papers(tables, "papers.jsonl.gz", what)
    said = tables.complaint()
    assert said.startswith(f"papers.jsonl.gz: damaged gzip file ({reason}")
    assert said.endswith("); download it again.")


def test_an_empty_file(tables: Tables) -> None:
    assert with_lines(tables, "").complaint() == "papers.jsonl: the table has no rows."


ARRAYS = {
    "compact": lambda records: json.dumps(records),
    "indented": lambda records: "\n " + json.dumps(records, indent=2) + "\n",
    "a record per line": lambda records: "[\n" + ",\n".join(map(json.dumps, records)) + "\n]",
    "byte order mark": lambda records: "\ufeff" + json.dumps(records),
}


@pytest.mark.parametrize("layout", ARRAYS)
@pytest.mark.parametrize("name", ["papers.json", "papers.json.gz"])
def test_an_array_of_records(layout: str, name: str, tables: Tables) -> None:
    tables.papers(name, ARRAYS[layout](TWO))
    assert tables.build().texts("paper") == ["A", "B"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('[{"id": "p1", "title": 7}]', "record 1, column 'title': found 7, expected text."),
        (
            '[{"id": "p1"}, {"id": {}}]',
            "record 2, column 'id': found {}, expected an id: text or a whole number.",
        ),
        ('[{"id": "p1"}, 7]', "record 2: found int, expected one JSON object per line."),
        (
            '[{"id": "p1", "title": "A"}',
            "record 2: the array has no closing bracket: the file is truncated; download it again.",
        ),
    ],
)
def test_a_mistake_in_an_array(content: str, message: str, tables: Tables) -> None:
    tables.papers("papers.json", content)
    assert tables.complaint() == f"papers.json: {message}"


def test_records_in_lines_may_end_in_json(tables: Tables) -> None:
    tables.papers("papers.json", "\n".join(map(json.dumps, TWO)))
    assert tables.build().texts("paper") == ["A", "B"]


def test_whole_floats_are_ids(tables: Tables) -> None:
    with_records(tables, {"id": 1.0, "title": "A"}, {"id": 2, "title": "B"})
    tables.write("cites.csv", "source,target\n1,2\n")
    assert tables.build().ids("paper") == ["1", "2"]


def test_an_object_over_several_lines(tables: Tables) -> None:
    tables.write("papers.json", json.dumps({"data": [{"id": "p1", "title": "A"}]}, indent=1))
    tables.paper["file"] = "papers.json"
    assert tables.complaint().endswith(
        "; expected one whole object per line, or an array of objects in a .json file."
    )
