"""Vectors from a file, whoever made it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from heterformer.embedding.node_vectors import NodeVectors, given_vectors, looked_up
from heterformer.errors import InputError
from tests.learning import tiny_network

IDS = tiny_network().ids("paper")
AUTHORS = tiny_network().ids("author")


def written(folder: Path, **columns: Any) -> Path:
    path = folder / "vectors.parquet"
    pl.DataFrame(columns).write_parquet(path)
    return path


def test_rows_are_the_networks_whatever_the_order_of_the_file(tmp_path: Path) -> None:
    ids, types = [IDS[7], AUTHORS[1], IDS[3]], ["paper", "author", "paper"]
    path = written(tmp_path, id=ids, type=types, vector=[[7.0, 0.0], [1.0, 1.0], [3.0, 4.0]])
    vectors = given_vectors(path, tiny_network())
    assert vectors["paper"].rows.tolist() == [3, 7]
    assert vectors["paper"].matrix.tolist() == [[3.0, 4.0], [7.0, 0.0]]
    assert vectors["author"].rows.tolist() == [1]
    assert vectors["paper"].has(np.array([7, 4, 3])).tolist() == [True, False, True]
    assert looked_up(vectors, "paper", np.array([7, 3])).tolist() == [[7.0, 0.0], [3.0, 4.0]]
    scaled = looked_up(vectors, "paper", np.array([3]), normalize=True)
    assert scaled.tolist() == [pytest.approx([0.6, 0.8])]


def test_without_a_type_they_are_of_the_type_that_asks(tmp_path: Path) -> None:
    vectors = given_vectors(written(tmp_path, id=[IDS[1]], vector=[[1, 2, 3]]), tiny_network())
    assert vectors["paper"].rows.tolist() == [1]
    assert vectors["paper"].lookup(np.array([1])).dtype == np.float32


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nothing\.parquet: does not exist, expected what"):
        given_vectors(tmp_path / "nothing.parquet", tiny_network())


def test_each_type_has_its_own_length(tmp_path: Path) -> None:
    ids, types = [IDS[7], AUTHORS[1], IDS[3]], ["paper", "author", "paper"]
    vectors = given_vectors(
        written(tmp_path, id=ids, type=types, vector=[[7.0], [1.0, 1.0], [3.0]]), tiny_network()
    )
    assert {t: one.matrix.shape for t, one in vectors.items()} == {"paper": (2, 1), "author": (1, 2)}
    path = written(tmp_path, id=ids, type=types, vector=[[7.0, 1.0], [1.0], [3.0]])
    with pytest.raises(InputError, match=r"row [13]: \d numbers in 'vector'"):
        given_vectors(path, tiny_network())


def test_all_of_a_type() -> None:
    vectors = NodeVectors.from_matrix(np.eye(3, dtype=np.float16))
    assert vectors.lookup(np.array([2, 0])).tolist() == [[0, 0, 1], [1, 0, 0]]


LISTS = pl.List(pl.Float32)
MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "unknown id": ({"id": ["nobody"], "vector": [[1.0]]}, "there is no paper with the id 'nobody'"),
    "unknown type": (
        {"id": ["x"], "type": ["person"], "vector": [[1.0]]},
        "vectors of type 'person'",
    ),
    "not a number": (
        {"id": IDS[:3], "vector": [[1.0], [float("nan")], [float("inf")]]},
        rf"the vector of paper '{IDS[1]}' has a value that is not a number \(2 of 3 have\)",
    ),
    "twice": ({"id": [IDS[0], IDS[0]], "vector": [[1.0], [2.0]]}, f"paper '{IDS[0]}' has two vectors"),
    "no ids": ({"name": IDS[:1], "vector": [[1.0]]}, "has no column 'id', found 'name', 'vector'"),
    "no vectors": ({"id": IDS[:1]}, "has no column 'vector', found 'id'"),
    "words": ({"id": IDS[:1], "vector": [["a"]]}, "expected lists of numbers"),
    "no lists": (
        {"id": IDS[:1], "vector": [1.0]},
        "'vector' holds Float64, expected lists",
    ),
    "lengths": (
        {"id": IDS[:3], "vector": [[1.0, 2.0], [1.0], [3.0, 4.0]]},
        "row 2: 1 numbers in 'vector', expected 2, as most have",
    ),
    "empty lists": (
        {"id": IDS[:1], "vector": pl.Series([[]], dtype=LISTS)},
        "row 1: 0 numbers",
    ),
    "no rows": ({"id": [], "vector": pl.Series([], dtype=LISTS)}, "has no rows"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_sentence(tmp_path: Path, mistake: str) -> None:
    columns, message = MISTAKES[mistake]
    with pytest.raises(InputError, match=message) as caught:
        given_vectors(written(tmp_path, **columns), tiny_network())
    assert "\n" not in str(caught.value)
    assert "vectors.parquet" in str(caught.value)


def test_what_is_no_table_is_told(tmp_path: Path) -> None:
    (tmp_path / "vectors.csv").write_text("id,vector\n")
    with pytest.raises(InputError, match="holds no vectors, expected what 'heterformer embed' wrote"):
        given_vectors(tmp_path / "vectors.csv", tiny_network())
