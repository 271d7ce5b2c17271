from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from heterformer.cli.main import main
from heterformer.maps.atlas import write_atlas
from heterformer.maps.layout import Layout
from heterformer.search.searcher import Searcher
from tests.serve.serving import served_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(served_run(), tmp_path_factory.mktemp("atlas") / "run"))


@pytest.fixture(scope="module")
def table(run: Path) -> pl.DataFrame:
    out = run.parent / "atlas.parquet"
    main(["map", str(run), "--atlas", str(out), "--max-nodes", "30"])
    return pl.read_parquet(out)


def test_a_row_for_each_node_where_it_is_on_the_map(run: Path, table: pl.DataFrame) -> None:
    store = Searcher(run).store
    layout = Layout.open(store)
    assert layout is not None  # the explorer need not make it
    assert table.columns == ["type", "id", "name", "label", "x", "y", "neighbors"]
    ids = [(t, i) for t in store.types for i in store.network.ids(t)]
    assert table.select("type", "id").rows() == ids
    places = np.concatenate([layout.places[t] for t in store.types])
    assert np.array_equal(table.select("x", "y").to_numpy(), places)
    assert table.filter(pl.col("type") == "paper")["label"].null_count() == 0


def test_neighbours_are_rows_of_the_table_the_closest_first(run: Path, table: pl.DataFrame) -> None:
    store = Searcher(run).store
    assert list(table.schema["neighbors"].to_schema()) == ["ids", "distances"]  # type: ignore[attr-defined]
    papers = store.matrix("paper").astype(np.float64)
    directions = papers / np.linalg.norm(papers, axis=1, keepdims=True)
    for row in (0, 57, 199):
        near = table["neighbors"][row]
        assert len(near["ids"]) == 10
        assert row not in near["ids"]
        assert near["distances"] == sorted(near["distances"])
        best = np.argsort(-(papers @ papers[row]), kind="stable")
        assert set(near["ids"]) == set(best[best != row][:10].tolist())
        assert near["distances"] == pytest.approx(1 - directions[near["ids"]] @ directions[row], abs=1e-5)
    author = table["type"].to_list().index("author")
    assert set(table["type"].gather(table["neighbors"][author]["ids"])) == {"author"}


def test_of_many_nodes_an_index_finds_the_neighbours(run: Path, table: pl.DataFrame) -> None:
    store = Searcher(run).store
    layout = Layout.open(store)
    assert layout is not None
    found = pl.read_parquet(write_atlas(store, layout, run.parent / "indexed.parquet", index_from=100))
    assert store.recall("paper") is not None
    assert found.drop("neighbors").equals(table.drop("neighbors"))
    both = zip(found["neighbors"], table["neighbors"], strict=True)
    shared = [len({*near["ids"]} & {*exact["ids"]}) / len(exact["ids"]) for near, exact in both]
    assert np.mean(shared) > 0.95


def test_mistakes(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    taken = run.parent / "taken.parquet"
    taken.write_text("mine")
    for flags, sentence in (
        (["--atlas", str(taken)], "exists already"),
        (["--landmarks", "0"], "--landmarks is 0, expected at least 1."),
        (["--atlas", "new.parquet", "--vectors", "other.parquet"], "leave out --vectors"),
    ):
        with pytest.raises(SystemExit):
            main(["map", str(run), *flags])
        assert sentence in " ".join(capsys.readouterr().err.split())
    assert taken.read_text() == "mine"
