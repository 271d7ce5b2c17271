"""Records of huge JSON files: whatever the layout, in chunks, with a sentence about what is wrong."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heterformer.datasets.json_records import record_frames
from heterformer.errors import InputError
from heterformer.network.tables.json_array import Sizes
from tests.networks import few

SCHEMA = pa.schema(
    {
        "id": pa.int64(),
        "title": pa.string(),
        "references": pa.list_(pa.int64()),
        "venue": pa.struct({"raw": pa.string()}),
    }
)
RECORDS: list[dict[str, Any]] = [
    {"id": 1, "title": 'a "}, {[ \\ \u2028 é 🦋', "references": [1, 2], "venue": {"raw": "X", "id": 7}},
    {"id": 2, "title": "]", "fos": [{"name": "}", "w": 0.1}], "references": []},
    {"id": 3, "indexed_abstract": {"InvertedIndex": {"{": [0], "\n": [1]}}, "venue": None},
]
WANTED = [{name: record.get(name) for name in SCHEMA.names} for record in RECORDS]
WANTED[0]["venue"] = {"raw": "X"}
LINES = [json.dumps(record, ensure_ascii=False) for record in RECORDS]


def one_line_arrays() -> str:
    return "[" + ", ".join(LINES) + "]"


LAYOUTS: dict[str, str] = {
    "a record per line": "\n".join(LINES) + "\n",
    "no line break at the end": "\n".join(LINES),
    "blank lines": "\n\n" + "\n \n".join(LINES) + "\n\n",
    "escaped": "".join(json.dumps(record) + "\n" for record in RECORDS),
    "array, commas first": "[\n" + "\n,".join(LINES) + "\n]\n",
    "array, commas first, bracket before the first": "[" + "\n,".join(LINES) + "\n]",
    "array, commas last": "[\n" + ",\n".join(LINES) + "\n]",
    "array, brackets beside records": "[" + ",\n".join(LINES) + "]",
    "array with Windows line ends": "[\r\n" + ",\r\n".join(LINES) + "\r\n]\r\n",
    "array in one line": one_line_arrays(),
    "array in one line that ends": one_line_arrays() + "\n",
    "indented array": json.dumps(RECORDS, indent=2, ensure_ascii=False),
    "records without anything between": "".join(LINES),
    "byte order mark": "\ufeff" + "\n".join(LINES),
    "byte order mark before an array": "\ufeff[" + "\n,".join(LINES) + "]",
}


def read(path: Path, sizes: Sizes | None = None) -> list[dict[str, Any]]:
    return [row for frame in record_frames(path, SCHEMA, sizes) for row in frame.to_dicts()]


def written(tmp_path: Path, content: str | bytes, name: str = "raw.json") -> Path:
    path = tmp_path / name
    data = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_same_records(layout: str, packed: bool, tmp_path: Path) -> None:
    assert read(written(tmp_path, LAYOUTS[layout], "raw.json.gz" if packed else "raw.json")) == WANTED


@pytest.mark.parametrize("layout", LAYOUTS)
def test_tiny_chunks_give_the_same_records(layout: str, tmp_path: Path) -> None:
    path = written(tmp_path, LAYOUTS[layout])
    sizes = Sizes(frame_rows=2, block=160)  # more than the first record, less than two
    frames = list(record_frames(path, SCHEMA, sizes))
    assert [len(frame) for frame in frames] == [2, 1]
    assert [row for frame in frames for row in frame.to_dicts()] == WANTED


def test_no_more_than_a_chunk_is_read_ahead(tmp_path: Path) -> None:
    """The file goes wrong in its fourth record; who asks for the first three need not know."""
    path = written(tmp_path, "\n".join(LINES) + "\n{broken\n")
    frames = record_frames(path, SCHEMA, Sizes(frame_rows=1))
    assert [next(frames)["id"][0] for _ in range(3)] == [1, 2, 3]
    with pytest.raises(InputError, match="line 4: not valid JSON"):
        next(frames)


values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
records = st.fixed_dictionaries(
    {"id": st.integers(-(2**62), 2**62)}, optional={"title": st.text(), "x": values}
)


@few
@given(st.lists(records, max_size=6), st.sampled_from([None, 1]), st.integers(1, 3))
def test_random_records_come_back(
    tmp_path_factory: pytest.TempPathFactory, found: list[dict[str, Any]], indent: int | None, size: int
) -> None:
    path = written(tmp_path_factory.mktemp("raw"), json.dumps(found, indent=indent))
    rows = read(path, Sizes(frame_rows=size))
    assert [(row["id"], row["title"]) for row in rows] == [(r["id"], r.get("title")) for r in found]


@pytest.mark.parametrize("content", ["", "\n", "[]", "[\n]\n", " [ ] "])
def test_no_records_are_no_frames(content: str, tmp_path: Path) -> None:
    assert read(written(tmp_path, content)) == []


ODD: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"id": "7"}, {"id": 7}),
    ({"id": 7.0}, {"id": 7}),
    ({"id": ""}, {"id": None}),
    ({"title": 5}, {"title": "5"}),
    ({"title": ""}, {"title": ""}),
    ({"references": ""}, {"references": None}),
    ({"references": [1, "2", None, ""]}, {"references": [1, 2, None, None]}),
    ({"venue": ""}, {"venue": None}),
    ({"venue": {}}, {"venue": {"raw": None}}),
    ({"venue": {"raw": 3}}, {"venue": {"raw": "3"}}),
    ({"title": "half \ud83e a pair"}, {"title": "half \ufffd a pair"}),
]


@pytest.mark.parametrize(("record", "expected"), ODD, ids=[json.dumps(record) for record, _ in ODD])
def test_odd_values_are_taken_for_what_they_mean(
    record: dict[str, Any], expected: dict[str, Any], tmp_path: Path
) -> None:
    path = written(tmp_path, json.dumps({"id": 1}) + "\n" + json.dumps(record) + "\n")
    empty = dict.fromkeys(SCHEMA.names)
    assert read(path) == [{**empty, "id": 1}, {**empty, **expected}]


FIRST = LINES[0] + "\n"
WRONG: list[tuple[str | bytes, str]] = [
    (FIRST + '{"id": []}\n', "line 2, id: found [], expected a whole number."),
    (FIRST + '{"id": true}\n', "line 2, id: found true, expected a whole number."),
    (FIRST + '{"id": 1.5}\n', "line 2, id: found 1.5, expected a whole number."),
    (FIRST + '{"id": 99999999999999999999}\n', "line 2, id: found 99999999999999999999, expected a whole"),
    (FIRST + '{"title": ["x"]}\n', 'line 2, title: found ["x"], expected text.'),
    (FIRST + '{"references": 5}\n', "line 2, references: found 5, expected a list."),
    (FIRST + '{"venue": {"raw": {}}}\n', "line 2, venue.raw: found {}, expected text."),
    (FIRST + '{"venue": 4}\n', "line 2, venue: found 4, expected a JSON object."),
    (FIRST + "[1]\n", "line 2: found list, expected a JSON object."),
    (FIRST + '{"id": 1} {"id": 2}\n', "line 2: not valid JSON at character 11 (Extra data)."),
    (FIRST + '{"id": 1,}\n{"id": 2}\n', "line 2: not valid JSON at character 10"),
    (FIRST.encode() + b'{"title": "\xff"}\n', "line 2: byte 12 is not UTF-8."),
    (FIRST + LINES[1][:-4], "line 2: the last record has no end: the file is truncated; download it again."),
    (
        f"[\n{FIRST},{LINES[1]}\n",
        "line 3: the array has no closing bracket: the file is truncated; download it",
    ),
    (
        f"[\n{FIRST},{LINES[1][:40]}",
        "line 3: the last record has no end: the file is truncated; download it again.",
    ),
    (f"[\n{FIRST}]\n{FIRST}", "line 4: found more after the end of the array."),
    (
        one_line_arrays()[:-1],
        "record 4: the array has no closing bracket: the file is truncated; download it again.",
    ),
    (one_line_arrays()[:-9], "record 3: "),
    ("[" + LINES[0] + ", [" + LINES[1] + "]]", "record 2: found a list, expected a JSON object."),
    (b"[" + LINES[0].encode() + b', {"title": "\xff"}]', "not UTF-8 near record"),
    ('[{"x": ' + "[" * 100_000, "record 1: maximum recursion depth exceeded"),
    (FIRST + '{"x": ' + "[" * 100_000 + "}\n", "line 2: not valid JSON (maximum recursion depth exceeded"),
    ("<html>\n</html>\n", "line 1: not valid JSON at character 1 (Expecting value)."),
]


@pytest.mark.parametrize(("content", "message"), WRONG)
def test_what_is_wrong_is_one_sentence_with_its_place(
    content: str | bytes, message: str, tmp_path: Path
) -> None:
    path = written(tmp_path, content)
    with pytest.raises(InputError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}: {message}")
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("end", ["\n", " "], ids=["in lines", "in one line"])
def test_what_never_ends_is_not_read_into_memory(end: str, tmp_path: Path) -> None:
    path = written(tmp_path, LINES[0] + end + '{"title": "' + "x" * 5000)
    with pytest.raises(InputError, match="2: found more than 0 MB without an end, expected JSON records"):
        read(path, Sizes(record=1000, block=200))


def cut(packed: bytes) -> bytes:
    return packed[: len(packed) // 2]


def spoilt(packed: bytes) -> bytes:
    return packed[:40] + b"\xff" * 20 + packed[60:]


@pytest.mark.parametrize("damage", [cut, spoilt])
def test_a_broken_gzip_file_is_one_sentence(damage: Callable[[bytes], bytes], tmp_path: Path) -> None:
    lines = "".join(json.dumps({"id": i, "title": str(i**9)}) + "\n" for i in range(3000))
    path = tmp_path / "raw.json.gz"
    path.write_bytes(damage(gzip.compress(lines.encode())))
    with pytest.raises(InputError, match=r"raw\.json\.gz: damaged gzip file \(.+\); download it again\.$"):
        read(path)
