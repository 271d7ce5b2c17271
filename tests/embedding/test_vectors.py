from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest

from heterformer.digests import DIGESTS
from heterformer.embedding.vectors import Chunk, Layout, Vectors, write_vectors
from heterformer.errors import InputError

IDS = {"paper": ["p,1", 'p"2', "ü3", "p4", ""], "author": ["a1", "a2"]}
RNG = np.random.default_rng(0)
MATRICES = {t: RNG.normal(size=(len(ids), 3)).astype(np.float32) for t, ids in IDS.items()}
SIGNATURES = {t: np.arange(len(ids), dtype=np.uint64) + np.uint64(1 << 63) for t, ids in IDS.items()}
H0 = np.array([[1, 2], [3, 4]], dtype=np.float32)


def chunks(dtype: Any = np.float32, size: int = 2) -> Iterator[Chunk]:
    for t, ids in IDS.items():
        for start in range(0, len(ids), size):
            part = slice(start, start + size)
            extra = {"h0": H0[part].astype(dtype)} if t == "author" else {}
            yield Chunk(t, ids[part], MATRICES[t][part].astype(dtype), SIGNATURES[t][part], extra)


def layout(dtype: Any = np.float32, h0: bool = True) -> Layout:
    counts = {t: len(ids) for t, ids in IDS.items()}
    return Layout(counts, 3, np.dtype(dtype), {"h0": 2} if h0 else {}, {"model": "m", "seed": 0})


@pytest.mark.parametrize("name", ["out.parquet", "out"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_what_is_written_comes_back(tmp_path: Path, name: str, dtype: Any) -> None:
    write_vectors(tmp_path / name, layout(dtype), chunks(dtype))
    opened = Vectors.open(tmp_path / name, rows_at_once=2)  # so that reading has several chunks
    assert opened.types == ("paper", "author")
    assert opened.metadata["model"] == "m"
    for t in IDS:
        assert opened.ids(t) == IDS[t]
        assert opened.matrix(t).dtype == dtype
        assert (opened.matrix(t) == MATRICES[t].astype(dtype)).all()
        assert (opened.mapped_matrix(t, tmp_path) == MATRICES[t].astype(dtype)).all()
        assert (opened.signatures(t) == SIGNATURES[t]).all()
        for start, part in opened.chunks(t):
            assert (part == MATRICES[t][start : start + len(part)].astype(dtype)).all()
        assert sum(len(part) for _, part in opened.chunks(t)) == len(IDS[t])
    assert {p.name for p in tmp_path.iterdir()} - {
        "paper.vector.unpacked.bin",
        "author.vector.unpacked.bin",
    } == {name}


def test_the_table_is_what_other_tools_expect(tmp_path: Path) -> None:
    write_vectors(tmp_path / "out.parquet", layout(), chunks())
    frame = pl.read_parquet(tmp_path / "out.parquet")
    assert frame.columns == ["id", "type", "vector", "h0", "signature"]
    assert frame.schema["vector"] == pl.Array(pl.Float32, 3)
    assert frame.filter(type="author")["h0"].to_list() == H0.tolist()
    assert frame.filter(type="paper")["h0"].null_count() == len(IDS["paper"])
    types = pq.read_schema(tmp_path / "out.parquet")
    assert str(types.field("vector").type).startswith("fixed_size_list")


def test_the_folder_is_what_numpy_reads(tmp_path: Path) -> None:
    write_vectors(tmp_path / "out", layout(), chunks())
    assert (np.load(tmp_path / "out" / "author.npy") == MATRICES["author"]).all()
    assert (np.load(tmp_path / "out" / "author.h0.npy") == H0).all()
    assert json.loads((tmp_path / "out" / "author.ids.json").read_text()) == ["a1", "a2"]


@pytest.mark.parametrize("name", ["out.parquet", "out"])
def test_a_failure_leaves_what_was_there(tmp_path: Path, name: str) -> None:
    write_vectors(tmp_path / name, layout(), chunks())

    def broken() -> Iterator[Chunk]:
        yield next(chunks())
        raise KeyError

    with pytest.raises(KeyError):
        write_vectors(tmp_path / name, layout(), broken())
    assert Vectors.open(tmp_path / name).ids("author") == IDS["author"]


ODD = ["a\nb", 'with "quotes"', "[", "", "論文", "\\n"]


@pytest.mark.parametrize("name", ["out.parquet", "out"])
def test_any_id_is_kept(tmp_path: Path, name: str) -> None:
    def parts() -> Iterator[Chunk]:
        for ids in (ODD[:2], ODD[2:]):
            yield Chunk("paper", ids, np.zeros((len(ids), 3), np.float32), np.zeros(len(ids), np.uint64), {})

    counts = {"paper": len(ODD)}
    write_vectors(tmp_path / name, replace(layout(h0=False), counts=counts), parts())
    assert Vectors.open(tmp_path / name).ids("paper") == ODD


def test_a_full_disk_is_told_before_arrays_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.posix_fallocate", full, raising=False)
    with pytest.raises(OSError, match="No space left"):
        write_vectors(tmp_path / "out", layout(), chunks())
    assert not (tmp_path / "out").exists()


def test_vectors_from_elsewhere(tmp_path: Path) -> None:
    frame = pl.DataFrame({"id": ["x", "y"], "type": ["paper", "paper"], "vector": [[1.0, 2.0], [3.0, 4.0]]})
    frame.write_parquet(tmp_path / "mine.parquet")
    opened = Vectors.open(tmp_path / "mine.parquet")
    assert opened.matrix("paper").tolist() == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize("kind", ["missing", "text", "columns", "folder"])
def test_what_holds_no_vectors(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "mine.parquet"
    if kind == "text":
        path.write_text("id,vector\n")
    elif kind == "columns":
        pl.DataFrame({"id": ["x"], "type": ["paper"], "vec": [1]}).write_parquet(path)
    elif kind == "folder":
        path.mkdir()
    with pytest.raises(InputError) as caught:
        Vectors.open(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert ("no column 'vector'" in str(caught.value)) == (kind == "columns")


@pytest.mark.parametrize("path", [None, 3, {"paper": []}])
def test_something_else_than_a_path(path: Any) -> None:
    with pytest.raises(InputError, match=r"^the place of the vectors is .*, expected the path of a file"):
        Vectors.open(path)


def test_a_type_that_is_not_there(tmp_path: Path) -> None:
    write_vectors(tmp_path / "out", layout(), chunks())
    with pytest.raises(InputError, match="has no vectors of type 'venue', the types are 'paper', 'author'"):
        Vectors.open(tmp_path / "out").matrix("venue")


ODD_TABLES: list[tuple[Any, str]] = [
    ([[1.0, 2.0], [3.0]], "the vector of paper number 2 has 1 numbers, expected 2 as others have"),
    ([[1.0, 2.0], None], "the vector of paper number 2 has 0 numbers, expected 2 as others have"),
    ([[1.0, 2.0], [3.0, float("nan")]], "the vector of paper number 2 has a value that is not a number"),
    (["x", "y"], "column 'vector' holds .*string, expected lists of numbers"),
]


@pytest.mark.parametrize(("values", "told"), ODD_TABLES)
def test_an_odd_table_is_told_where(values: list[Any], told: str, tmp_path: Path) -> None:
    pl.DataFrame({"id": ["a", "b"], "type": "paper", "vector": values}).write_parquet(tmp_path / "v.parquet")
    with pytest.raises(InputError, match=told):
        Vectors.open(tmp_path / "v.parquet").matrix("paper")


def test_a_table_without_rows(tmp_path: Path) -> None:
    empty = pl.DataFrame({"id": ["a"], "type": "paper", "vector": [[1.0]]}).clear()
    empty.write_parquet(tmp_path / "v.parquet")
    with pytest.raises(InputError, match="has no rows with a type, expected a vector for each node"):
        Vectors.open(tmp_path / "v.parquet")


def test_a_type_with_text_has_no_h0(tmp_path: Path) -> None:
    write_vectors(tmp_path / "v.parquet", layout(), chunks())
    opened = Vectors.open(tmp_path / "v.parquet")
    assert opened.h0("paper") is None
    assert np.array_equal(opened.h0("author"), H0)  # type: ignore[arg-type]


# --- Vectors of a stranger -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["../../x", "/tmp/x", "a/b", "..", "", 7])
def test_a_list_of_parts_leads_nowhere_else(tmp_path: Path, name: Any) -> None:
    write_vectors(tmp_path / "x", layout(), chunks())
    (tmp_path / "out").mkdir()
    write_vectors(tmp_path / "out" / "part.parquet", layout(), chunks())
    values = {"types": ["paper"], "parts": ["part.parquet"]}
    (tmp_path / "out" / "vectors.json").write_text(json.dumps(values))
    assert Vectors.open(tmp_path / "out").ids("paper") == IDS["paper"]
    (tmp_path / "out" / "vectors.json").write_text(json.dumps(values | {"parts": ["part.parquet", name]}))
    with pytest.raises(InputError, match=r"vectors.json: lists .*, expected a plain name without a path"):
        Vectors.open(tmp_path / "out")


@pytest.mark.parametrize("name", ["../../x", "/tmp/x", "a/b", "..", ".x"])
def test_types_lead_nowhere_else(tmp_path: Path, name: str) -> None:
    write_vectors(tmp_path / "out", layout(), chunks())
    manifest = json.loads((tmp_path / "out" / "vectors.json").read_text())
    (tmp_path / "out" / "vectors.json").write_text(json.dumps(manifest | {"types": ["paper", name]}))
    table = tmp_path / "table.parquet"
    pl.DataFrame({"id": ["a"], "type": [name], "vector": [[1.0]]}).write_parquet(table)
    for path in (tmp_path / "out", table):
        with pytest.raises(InputError, match=r"lists '.*', expected a plain name without a path"):
            Vectors.open(path)


@pytest.mark.parametrize(
    ("ids", "problem"), [('["a1", 2]', "expected a list of ids"), ('["a1", "a2", "a3"]', "it has 3 ids")]
)
def test_ids_that_cannot_be_right_are_refused(tmp_path: Path, ids: str, problem: str) -> None:
    write_vectors(tmp_path / "out", layout(), chunks())
    (tmp_path / "out" / DIGESTS).unlink(missing_ok=True)
    (tmp_path / "out" / "author.ids.json").write_text(ids)
    with pytest.raises(InputError, match=rf"author\.ids\.json: .*{problem}"):
        Vectors.open(tmp_path / "out").ids("author")
