"""A network that has grown since training is searched: its new nodes are found and can be asked with."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch

from heterformer.cli.main import main
from heterformer.embedding import embed as embed_module
from heterformer.embedding import two_passes
from heterformer.embedding.embed import embed, embed_run
from heterformer.embedding.options import EmbedOptions
from heterformer.network.lookup import Node
from heterformer.network.store import Network
from heterformer.search.searcher import Searcher
from heterformer.search.store import KEPT_NETWORKS, SearchStore
from heterformer.training import folding, unseen
from heterformer.training.folding import FoldedIn, folded_rows
from heterformer.training.run import Run
from heterformer.training.train import train
from tests.embedding.growing import SPEC, State, first_state
from tests.failing import Failed
from tests.learning import tiny_options, tiny_reader

NEW = "kernel methods for new graphs"


@pytest.fixture(scope="module")
def before() -> State:
    return first_state()


@pytest.fixture(scope="module")
def run(before: State, tmp_path_factory: pytest.TempPathFactory) -> Run:
    options = tiny_options(tiny_reader(), max_steps=2)
    return train(before.built(), tmp_path_factory.mktemp("grown") / "run", options)


@pytest.fixture(scope="module")
def grown(before: State) -> Network:
    papers = list(before.titles)
    later = before.with_paper("new-1", NEW, papers[:2], ["New Author"], "New Venue")
    return later.with_paper("new-2", "another title", papers[3:4], ["New Author"], "New Venue").built()


@pytest.fixture
def searched(run: Run, grown: Network, capsys: pytest.CaptureFixture[str]) -> Any:
    def hits(*words: object) -> list[dict[str, Any]]:
        """The results of a search of the grown network, all of its papers unless told."""
        capsys.readouterr()
        place = ["--network", str(grown.path), "--json", "--top", "300"]
        main(["search", str(run.path), *map(str, words), *place])
        (ranking,) = json.loads(capsys.readouterr().out)["rankings"]
        found: list[dict[str, Any]] = ranking["hits"]
        return found

    return hits


def best_first(vectors: Any, query: Any, ids: list[str]) -> list[str]:
    return [ids[i] for i in np.argsort(-(vectors.astype(np.float64) @ query), kind="stable")]


def test_new_papers_are_ranked_by_the_vectors_that_embedding_gives(
    searched: Any, run: Run, grown: Network
) -> None:
    found = searched(NEW)
    assert {hit["id"] for hit in found} == set(grown.ids("paper"))
    vectors = embed(run.model(), grown)["paper"]
    query = Searcher(run.path, network=grown.path).text(NEW).vector
    scores = {i: float(v @ query) for i, v in zip(grown.ids("paper"), vectors, strict=True)}
    assert [hit["score"] for hit in found] == pytest.approx([scores[h["id"]] for h in found], abs=1e-4)
    speakers = {n["id"] for hit in found for n in hit["neighbors"]}
    assert speakers & {"New Author", "New Venue"}


def test_a_new_author_and_a_new_paper_can_be_asked_with(searched: Any, run: Run, grown: Network) -> None:
    vectors, ids = embed(run.model(), grown), grown.ids("paper")
    (author,) = grown.rows("author", ["New Author"])
    assert [h["id"] for h in searched("--like", "New Author")][:20] == (
        best_first(vectors["paper"], vectors["author"][author], ids)[:20]
    )
    known = {h["id"] for h in searched("--like", "New Author") if h["known"]}
    assert known == {"new-1", "new-2"}
    assert "new-1" not in {h["id"] for h in searched("--like", "new-1")}
    assert "New Author" in {h["id"] for h in searched("--like", "new-1", "--type", "author")}


def test_a_new_paper_with_its_new_neighbours_has_its_own_vector_as_a_query(run: Run, grown: Network) -> None:
    """What the folded-in author and venue say in the query is what they say in the embedding."""
    searcher = Searcher(run.path, network=grown.path)
    given = [Node("author", int(grown.rows("author", ["New Author"])[0]))]
    given += [Node("venue", int(grown.rows("venue", ["New Venue"])[0]))]
    (row,) = grown.rows("paper", ["new-2"])
    source, target = grown.edges("cites")
    given += [Node("paper", int(other)) for other in target[source == row]]
    expected = embed(run.model(), grown, EmbedOptions(all_neighbors=99))["paper"][row]
    np.testing.assert_allclose(searcher.text("another title", given).vector, expected, atol=1e-4)
    alone = searcher.text("another title", given[1:]).vector
    assert np.abs(alone - expected).max() > 1e-4


def test_later_searches_fold_nothing_in_and_read_no_tables(
    searched: Any, run: Run, grown: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = searched(NEW, "--author", "New Author")
    monkeypatch.setattr(folding, "Folding", None)
    monkeypatch.setattr(embed_module, "Embedding", None)
    assert searched(NEW, "--author", "New Author") == before
    model = Searcher(run.path, network=grown.path).encoder.encoder.model
    sizes = {name: len(v) for name, v in model.state_dict().items() if name.startswith("textless.tables")}
    assert len(sizes) == 2
    assert set(sizes.values()) == {0}
    whole = run.model().state_dict()
    assert all(torch.equal(v, whole[name]) for name, v in model.state_dict().items() if name not in sizes)


def test_vectors_of_each_network_are_kept_apart(searched: Any, run: Run, grown: Network) -> None:
    searched(NEW)
    own = Searcher(run.path)
    assert "new-1" not in own.network.ids("paper")
    assert len(own.rank(own.text(NEW), "paper", 1000).hits) == len(own.network.ids("paper"))
    again = Searcher(run.path, network=grown.path)
    assert again.store.vectors.path == run.path / "search" / grown.fingerprint / "vectors"
    assert own.store.vectors.path == run.path / "search" / "vectors"


def test_what_did_not_change_is_taken_over_from_the_runs_own(
    run: Run, grown: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = shutil.copytree(run.path, tmp_path / "run", ignore=shutil.ignore_patterns("search"))
    _ = Searcher(copy).store
    computed, whole = [], two_passes.sampled_vectors

    def noted(model: Any, batcher: Any, nodes: Any, *others: Any, **more: Any) -> Any:
        computed.extend(nodes.rows)
        return whole(model, batcher, nodes, *others, **more)

    monkeypatch.setattr(two_passes, "sampled_vectors", noted)
    found = Searcher(copy, network=grown.path).store.matrix("paper")
    assert 2 <= len(computed) < 10
    np.testing.assert_allclose(found, embed(run.model(), grown)["paper"], atol=1e-4)


def test_what_grows_daily_is_taken_over_from_yesterday_and_then_forgotten(
    run: Run, before: State, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = shutil.copytree(run.path, tmp_path / "run", ignore=shutil.ignore_patterns("search"))
    folded: list[int] = []

    def noted(model: Any, node_type: str, new: FoldedIn, *others: Any) -> Any:
        folded.append(len(new.nodes))
        return folded_rows(model, node_type, new, *others)

    monkeypatch.setattr(unseen, "folded_rows", noted)
    state, prints = before, []
    for day in range(5):
        state = state.with_paper(f"new-{day}", f"title {day}", [], [f"author {day}"], f"venue {day}")
        network = state.built()
        prints.append(network.fingerprint)
        searcher = Searcher(copy, network=network.path)
        assert len(searcher.store.matrix("author")) == network.schema.counts["author"]
    assert folded == [1, 1] * 5  # each day's new author and new venue
    kept = {p.name for p in (copy / "search").iterdir() if p.name in prints}
    assert kept == set(prints[-KEPT_NETWORKS:])


def test_what_has_most_in_common_is_taken_over(
    run: Run, before: State, grown: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = shutil.copytree(run.path, tmp_path / "run", ignore=shutil.ignore_patterns("search"))
    some = set(list(before.titles)[:10])
    few = State(
        {paper: title for paper, title in before.titles.items() if paper in some},
        tuple((a, b) for a, b in before.cites if a in some and b in some),
        tuple((a, b) for a, b in before.written_by if a in some),
        tuple((a, b) for a, b in before.published_in if a in some),
    ).built()
    computed, whole = [], two_passes.sampled_vectors

    def noted(model: Any, batcher: Any, nodes: Any, *others: Any, **more: Any) -> Any:
        computed.append(len(nodes))
        return whole(model, batcher, nodes, *others, **more)

    _ = Searcher(copy).store, Searcher(copy, network=few.path).store
    monkeypatch.setattr(two_passes, "sampled_vectors", noted)
    _ = Searcher(copy, network=grown.path).store
    assert 2 <= sum(computed) < 10


@pytest.fixture
def kept_few(run: Run, before: State, tmp_path: Path) -> Any:
    """Opens the store of the n-th of several networks, of which two are kept besides the run's own."""
    copy = shutil.copytree(run.path, tmp_path / "run", ignore=shutil.ignore_patterns("search"))
    networks = [before.with_paper(f"n-{i}", f"title {i}", [], [f"a {i}"], "v").built() for i in range(4)]
    return lambda number: SearchStore.open(Run(copy), networks[number], kept_networks=2)


def test_a_network_in_use_is_not_removed(kept_few: Any) -> None:
    places = []
    for number in (0, 1, 0, 2):
        places.append(kept_few(number).vectors.path)
    assert [place.exists() for place in places] == [True, False, True, True]


def test_a_store_that_is_open_outlives_its_files(kept_few: Any) -> None:
    first = kept_few(0)
    for number in (1, 2):
        _ = kept_few(number)
    assert not first.vectors.path.exists()
    assert np.isfinite(first.matrix("paper")).all()
    assert np.isfinite(first.h0("author")).all()


def test_a_network_that_is_worked_on_is_not_removed(kept_few: Any) -> None:
    folder = kept_few(0).vectors.path.parent
    (folder / ".textless.weights.lock").touch()
    for number in (1, 2):
        _ = kept_few(number)
    assert folder.exists()
    (folder / ".textless.weights.lock").unlink()
    _ = kept_few(3)
    assert not folder.exists()
    assert not list(folder.parent.glob(".*"))


def test_vectors_of_which_a_kill_left_half_are_made_again(kept_few: Any) -> None:
    vectors = kept_few(0).vectors.path
    (vectors / "paper.npy").unlink()
    assert len(kept_few(0).matrix("paper")) == len(np.load(vectors / "paper.npy"))


@pytest.mark.parametrize("options", [EmbedOptions(), EmbedOptions(types=("paper",))])
def test_vectors_that_embed_wrote_of_the_grown_network(
    run: Run, grown: Network, searched: Any, tmp_path: Path, options: EmbedOptions
) -> None:
    out = tmp_path / "grown.parquet"
    embed_run(run.path, out, options, network=grown.path)
    asked = [NEW, "--author", "New Author"]
    found, kept = searched(*asked, "--vectors", out), searched(*asked)
    assert [h["id"] for h in found] == [h["id"] for h in kept]
    assert [h["score"] for h in found] == pytest.approx([h["score"] for h in kept], abs=1e-5)


def test_vectors_and_network_that_do_not_fit_together(
    run: Run, grown: Network, tmp_path: Path, failed: Failed
) -> None:
    own, other = tmp_path / "own", tmp_path / "grown"
    embed_run(run.path, own)
    embed_run(run.path, other, network=grown.path)
    said = (
        "nodes are not those of {} in the same order; search the network that was embedded, or embed this one"
    )
    for vectors, flags, path in (
        (own, ["--network", grown.path], grown.path),
        (other, [], run.network().path),
    ):
        words = ["search", run.path, NEW, "--vectors", vectors, *flags]
        assert said.format(path) in failed(main, [*map(str, words)])


def test_a_network_of_other_types(run: Run, tmp_path: Path, failed: Failed) -> None:
    spec = SPEC | {"nodes": {"paper": {"text": ["title"]}}, "neighbors": {"paper": 2}}
    spec["relations"] = {"cites": SPEC["relations"]["cites"]}
    papers = pl.DataFrame({"id": ["a", "b"], "title": ["x", "y"]})
    cites = pl.DataFrame({"source": ["a"], "target": ["b"]})
    other = Network.from_frames(spec, {"paper": papers}, {"cites": cites}, tmp_path / "net")
    said = failed(main, ["search", str(run.path), NEW, "--network", str(other.path)])
    assert "types without text are none; the model was trained with author, venue" in said


def test_a_grown_network_is_mapped_and_explained_too(
    run: Run, grown: Network, capsys: pytest.CaptureFixture[str]
) -> None:
    """New nodes are there, it is said that they are new, and the run's own map stays."""
    other = ["--network", str(grown.path)]
    new = {t: len(set(grown.ids(t)) - set(run.network().ids(t))) for t in grown.schema.node_types}
    main(["map", str(run.path), "--max-nodes", "20"])
    own = (run.path / "map" / "map.html").read_bytes()
    capsys.readouterr()
    main(["map", str(run.path), *other, "--max-nodes", "1000"])
    said = capsys.readouterr().err
    assert f"{grown.path}: {new['paper']} paper nodes are new since training." in said
    page = run.path / f"{grown.path.name}.map" / "map.html"
    assert '"new-2"' in page.read_text(encoding="utf-8")
    assert (run.path / "map" / "map.html").read_bytes() == own
    main(["explain", str(run.path), "new-2", *other, "--json"])
    captured = capsys.readouterr()
    assert "paper 'new-2' is not in the network that" in captured.err
    assert json.loads(captured.out)
    old = run.network().ids("paper", [0])[0]
    main(["explain", str(run.path), old, *other, "--json"])
    assert "is not in the network" not in capsys.readouterr().err
    assert run.new_rows(run.network()) == {}
