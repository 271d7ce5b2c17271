"""What a run keeps for searching, and when it is made again."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

from heterformer.cli.main import main
from heterformer.embedding.embed import embed_run, embed_to
from heterformer.embedding.options import EmbedOptions
from heterformer.embedding.vectors import Vectors
from heterformer.errors import InputError
from heterformer.search import store as search_store
from heterformer.search.store import SearchStore, kept_vectors, typical_rows
from heterformer.training.run import Run
from tests.learning import tiny_network
from tests.processor import with_bf16
from tests.search.searching import tiny_run

needs_faiss = pytest.mark.skipif(find_spec("faiss") is None, reason="FAISS is an optional dependency")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(shutil.copytree(tiny_run(), tmp_path / "run", ignore=shutil.ignore_patterns("search")))


class Embedding:
    """Counts how often vectors are made."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, *arguments: Any, **more: Any) -> Vectors:
        self.calls += 1
        return embed_to(*arguments, **more)


@pytest.fixture
def embedding(monkeypatch: pytest.MonkeyPatch) -> Embedding:
    counting = Embedding()
    monkeypatch.setattr(search_store, "embed_to", counting)
    return counting


def opened(run: Run, vectors: Path | None = None, **sizes: int) -> SearchStore:
    return SearchStore.open(run, run.network(), vectors, **sizes)


def train_further(run: Run) -> None:
    path = run.best / "model.safetensors"
    weights = load_file(path)
    save_file({name: value * 1.5 for name, value in weights.items()}, path)


def test_vectors_are_made_once(run: Run, embedding: Embedding, capsys: pytest.CaptureFixture[str]) -> None:
    first, again = opened(run), opened(run)
    assert embedding.calls == 1
    for node_type in ("paper", "author", "venue"):
        assert np.array_equal(first.matrix(node_type), again.matrix(node_type))
        assert len(first.matrix(node_type)) == tiny_network().schema.counts[node_type]
    assert capsys.readouterr() == ("", "")


def test_of_two_first_searches_one_makes_them_and_one_waits(
    run: Run, embedding: Embedding, capsys: pytest.CaptureFixture[str]
) -> None:
    with ThreadPoolExecutor(2) as pool:
        stores = list(pool.map(opened, [run, run]))
    assert embedding.calls == 1
    assert np.array_equal(stores[0].matrix("paper"), stores[1].matrix("paper"))
    said = capsys.readouterr().err
    assert said == f"{run.path}: another process is computing its search vectors; waiting for it.\n"


def test_they_are_made_again_when_the_weights_have_changed(
    run: Run, embedding: Embedding, capsys: pytest.CaptureFixture[str]
) -> None:
    before = np.array(opened(run).matrix("paper"))
    train_further(run)
    after = opened(run).matrix("paper")
    assert embedding.calls == 2
    assert not np.allclose(before, after)
    told = "its model has changed since its search vectors were computed; computing them again"
    assert capsys.readouterr().err == f"{run.path}: {told}.\n"
    opened(run)
    assert embedding.calls == 2


def test_they_are_made_again_in_another_precision(
    run: Run, embedding: Embedding, capsys: pytest.CaptureFixture[str]
) -> None:
    exact = np.array(opened(run).matrix("paper"))
    rounded = [SearchStore.open(run, run.network(), precision="bf16").matrix("paper") for _ in range(2)]
    assert embedding.calls == 2
    said = "its search vectors are not in bf16; computing them again"
    assert capsys.readouterr().err.startswith(f"{run.path}: {said}.\n")  # a warning may follow
    assert np.array_equal(*rounded)
    assert not np.array_equal(rounded[0], exact)
    assert np.allclose(rounded[0], exact, atol=0.1)
    assert np.array_equal(opened(run).matrix("paper"), rounded[0])  # a search takes what is there
    assert embedding.calls == 2
    again = SearchStore.open(run, run.network(), precision="float32").matrix("paper")
    assert np.array_equal(again, exact)


def test_they_are_made_in_bf16_where_the_processor_has_it_and_stay_as_they_are_elsewhere(
    run: Run, embedding: Embedding, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as patched:
        with_bf16(patched)
        store = opened(run)
        assert store.vectors.metadata["precision"] == "bf16"
    assert np.array_equal(opened(run).matrix("paper"), store.matrix("paper"))
    assert embedding.calls == 1  # this one has none
    assert capsys.readouterr().err == ""
    network = run.network()
    assert kept_vectors(run, network, EmbedOptions()) == store.vectors.path
    assert kept_vectors(run, network, EmbedOptions(precision="float32")) is None


def test_embed_continues_in_the_precision_of_what_is_kept(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        with_bf16(patched)
        store = opened(run)
    main(["embed", str(run.path), str(tmp_path / "kept")])
    kept = Vectors.open(tmp_path / "kept")
    assert kept.metadata["precision"] == "bf16"
    assert np.array_equal(kept.matrix("paper"), store.matrix("paper"))
    main(["embed", str(run.path), str(tmp_path / "exact"), "--precision", "float32"])
    exact = Vectors.open(tmp_path / "exact")
    assert exact.metadata["precision"] == "float32"
    assert not np.array_equal(exact.matrix("paper"), store.matrix("paper"))


def test_a_stop_in_between_leaves_nothing_that_seems_up_to_date(
    run: Run, embedding: Embedding, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(run)
    weights = (run.best / "model.safetensors").read_bytes()
    train_further(run)
    with monkeypatch.context() as patched:
        patched.setattr(search_store, "embed_to", stopped_after_embedding)
        with pytest.raises(KeyboardInterrupt):
            opened(run)
    (run.best / "model.safetensors").write_bytes(weights)  # the old digest would fit again
    assert not np.allclose(opened(run).matrix("paper"), 0)
    assert embedding.calls == 2


def stopped_after_embedding(*arguments: Any, **more: Any) -> Vectors:
    vectors = embed_to(*arguments, **more)
    np.save(vectors.path / "paper.npy", np.zeros((200, 16)))
    raise KeyboardInterrupt


def test_a_run_without_a_model(run: Run) -> None:
    shutil.rmtree(run.best)
    shutil.rmtree(run.last)
    with pytest.raises(InputError) as caught:
        opened(run)
    assert str(caught.value) == f"{run.path}: has no checkpoint yet; run 'heterformer train' again."


def test_other_vectors(run: Run, embedding: Embedding, tmp_path: Path) -> None:
    vectors = embed_run(run.path, tmp_path / "vectors")
    np.save(vectors.path / "paper.npy", np.array(vectors.matrix("paper")) + 1)
    store = opened(run, vectors.path)
    assert embedding.calls == 0
    assert np.array_equal(store.matrix("paper"), vectors.matrix("paper"))
    assert not (run.path / "search").exists()


@needs_faiss
def test_a_parquet_table_of_vectors(run: Run, tmp_path: Path) -> None:
    embed_run(run.path, tmp_path / "vectors.parquet")
    store, own = opened(run, tmp_path / "vectors.parquet"), opened(run)
    assert np.array_equal(store.matrix("author"), own.matrix("author"))
    found = [s.index("author", "approximate").search(own.matrix("paper")[:1], 5) for s in (store, own)]
    assert found[0][0].rows.tolist() == found[1][0].rows.tolist()


def test_vectors_of_other_nodes(run: Run, tmp_path: Path) -> None:
    vectors = embed_run(run.path, tmp_path / "vectors")
    ids = vectors.ids("paper")
    (vectors.path / "paper.ids.json").write_text(json.dumps([*ids[1:], ids[0]]))
    (vectors.path / "digests.json").unlink()
    store = opened(run, vectors.path)
    assert len(store.matrix("author"))
    with pytest.raises(InputError) as caught:
        store.matrix("paper")
    assert str(caught.value) == (
        f"{vectors.path}: its paper nodes are not those of {tiny_network().path} in the same order; "
        f"search the network that was embedded, or embed this one."
    )


@pytest.mark.parametrize("count", [1, 7, 1024, 1025, 5000])
def test_typical_rows_are_spread_over_all(count: int) -> None:
    rows = typical_rows(count)
    assert len(rows) == min(count, 1024) == len(set(rows.tolist()))
    assert (rows[0], rows[-1]) == (0, count - 1)


def test_typical_vectors_are_read_once(run: Run) -> None:
    store = SearchStore.open(run, tiny_network())
    node_type = store.types[0]
    matrix = store.matrix(node_type)
    np.testing.assert_array_equal(store.typical(node_type), matrix[typical_rows(len(matrix))])
    assert store.typical(node_type) is store.typical(node_type)


def test_search_is_exact_unless_a_type_is_large(run: Run) -> None:
    store = opened(run)
    assert store.index("paper").name == store.index("paper", "exact").name == "exact"


@needs_faiss
def test_a_large_type_gets_an_index_with_its_recall_reported(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert opened(run, approximate_from=200).index("paper").name == "approximate"
    message = re.fullmatch(
        r"Built an approximate index of 200 paper nodes: recall@10 (.*)\.\n", capsys.readouterr().err
    )
    assert message
    assert 0.9 < float(message[1]) <= 1
    assert opened(run, approximate_from=200).index("venue").name == "exact"
    assert opened(run, approximate_from=200).index("paper", "exact").name == "exact"
    assert opened(run, approximate_from=200).index("paper").name == "approximate"
    assert capsys.readouterr().err == ""  # it is kept


@needs_faiss
def test_a_damaged_index_is_built_again_with_a_sentence(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    opened(run).index("author", "approximate")
    (path,) = (run.path / "search" / "index").iterdir()
    capsys.readouterr()
    (path / "lists.faiss").write_bytes((path / "lists.faiss").read_bytes()[:-1])
    assert opened(run).index("author", "approximate").name == "approximate"
    said = capsys.readouterr().err
    assert said.startswith(f"{path}/lists.faiss: is damaged: ")
    assert "It is built again now.\nBuilt an approximate index" in said
    opened(run).index("author", "approximate")
    assert capsys.readouterr().err == ""


@needs_faiss
def test_an_index_of_other_vectors_is_replaced(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    store = opened(run)
    for _ in range(2):
        store.index("author", "approximate")
    (first,) = (run.path / "search" / "index").iterdir()
    assert capsys.readouterr().err.count("Built") == 1
    train_further(run)
    opened(run).index("author", "approximate")
    (second,) = (run.path / "search" / "index").iterdir()
    assert capsys.readouterr().err.count("Built") == 1
    assert first != second
    path = run.path / "search" / "vectors" / "author.npy"
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1))
    opened(run).index("author", "approximate")
    (third,) = (run.path / "search" / "index").iterdir()
    assert third not in (first, second)


def test_without_faiss_a_large_type_is_searched_exactly(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    store = opened(run, approximate_from=200)
    assert store.index("paper").name == "exact"
    advice = "for faster search: pip install 'heterformer[index]'"
    assert capsys.readouterr().err == f"There are 200 paper nodes; {advice}.\n"
    with pytest.raises(InputError, match="index is 'approximate', which needs FAISS: pip install"):
        store.index("paper", "approximate")


def test_embed_takes_what_a_search_has_computed(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One cache and one rule of precision: as asked for, and a search takes either."""
    store, network, out = opened(run), run.network(), tmp_path / "out"
    main(["embed", str(run.path), str(out)])
    count = network.schema.counts["paper"]
    assert f"{out}: computed 0 of {count} nodes with text; " in capsys.readouterr().err
    for node_type in store.types:
        assert np.array_equal(Vectors.open(out).matrix(node_type), store.matrix(node_type))
    same = EmbedOptions(h0=True, types=("paper",))
    assert kept_vectors(run, network, same) == store.vectors.path
    for other in (EmbedOptions(precision="bf16"), EmbedOptions(seed=1), EmbedOptions(dtype="float16")):
        assert kept_vectors(run, network, other) is None
    with pytest.raises(SystemExit):
        main(["embed", str(run.path), str(out)])
    assert "exists already" in capsys.readouterr().err
    main(["embed", str(run.path), str(out), "--overwrite"])
    train_further(run)
    assert kept_vectors(run, network, same) is None
