"""``draw_map``, and ``heterformer map`` as a user meets it."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from heterformer import progress
from heterformer.cli.main import main
from heterformer.embedding.embed import embed_run
from heterformer.maps import draw as drawing
from heterformer.maps.draw import draw_map
from heterformer.maps.options import MapOptions
from heterformer.maps.regions import region_counts
from heterformer.search import store as search_store
from tests.learning import tiny_network
from tests.maps.mapping import labelled_network, of_all, planted_vectors
from tests.pictures import check_picture
from tests.search.searching import tiny_run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return shutil.copytree(tiny_run(), tmp_path / "run", ignore=shutil.ignore_patterns("search"))


def data_of(page: Path) -> dict[str, Any]:
    (found,) = re.findall(r'id="data">(.*?)</script>', page.read_text(encoding="utf-8"))
    values: dict[str, Any] = json.loads(found)
    return values


def ids_in(page: Path) -> set[str]:
    return {node[4] for node in data_of(page)["nodes"]}


def failed(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The one sentence with which the command fails."""
    with pytest.raises(SystemExit) as exit_:
        main(["map", *map(str, arguments)])
    captured = capsys.readouterr()
    assert (exit_.value.code, captured.out) == (1, "")
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1
    return captured.err.removeprefix("error: ").rstrip("\n")


def test_a_picture_and_a_page(tmp_path: Path) -> None:
    network = labelled_network()
    out = tmp_path / "figures"
    drawn = draw_map(network, of_all(planted_vectors(network)), out)
    assert drawn == [out / "map.png", out / "map.html"]
    check_picture(out / "map.png")
    assert ids_in(out / "map.html") == set(network.ids("paper"))
    before = [path.read_bytes() for path in drawn]
    assert [path.read_bytes() for path in draw_map(network, of_all(planted_vectors(network)), out)] == before
    assert sorted(path.name for path in out.iterdir()) == ["map.html", "map.png"]


def test_layouts_say_how_far_they_are(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moves: dict[str, list[float]] = {}
    stages: dict[str, progress.Stage] = {}
    advance = progress.Bar.advance

    def noted(self: progress.Bar, amount: float = 1) -> None:
        stages[self._stage.description] = self._stage
        moves.setdefault(self._stage.description, []).append(amount)
        advance(self, amount)

    monkeypatch.setattr(progress.Bar, "advance", noted)
    main(["map", str(run), "--max-nodes", "60"])
    schema = tiny_network().schema
    nodes = sum(schema.counts.values())
    for name, total in {
        "laying out the map": 1000,
        "laying out all nodes": 1000,
        "placing all nodes": nodes,
        "naming regions": sum(region_counts(schema.counts["paper"]).values()),
        "drawing the map": 2,
    }.items():
        assert stages[name].total == sum(moves[name]) == total
    assert len(moves["laying out the map"]) > 5
    assert len(moves["laying out all nodes"]) > 5


def test_the_command_maps_a_run_by_the_vectors_that_searching_keeps(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    main(["map", str(run), "--max-nodes", "60"])
    png, html = run / "map" / "map.png", run / "map" / "map.html"
    assert capsys.readouterr().out == f"{png}\n{html}\n"
    check_picture(png)
    assert len(ids_in(html)) == 60
    assert ids_in(html) < set(tiny_network().ids("paper"))
    assert (run / "search" / "vectors" / "paper.npy").is_file()
    monkeypatch.setattr(search_store, "embed_to", None)  # they are there already
    classes = [key["name"] for key in data_of(html)["legend"]][:2]
    main(["map", str(run), "--max-nodes", "30", "--classes", *classes])
    data = data_of(html)
    assert {node[6] for node in data["nodes"]} == set(classes)
    assert len(data["nodes"]) == 30


def test_the_command_takes_vectors_from_a_file(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors = embed_run(run, tmp_path / "vectors.parquet")
    seen: dict[str, Any] = {}

    def noted(network: object, found: dict[str, Any], out: Path, options: MapOptions) -> list[Path]:
        seen.update(found)
        return []

    monkeypatch.setattr(drawing, "draw_map", noted)
    main(["map", str(run), "--types", "author", "venue", "--vectors", str(vectors.path)])
    assert set(seen) == {"paper", "author", "venue"}
    for node_type, one in seen.items():
        assert np.array_equal(one.matrix, vectors.matrix(node_type))
    assert not (run / "search").exists()


def test_a_map_by_other_vectors_does_not_replace_the_runs_own(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, ids = tmp_path / "other.parquet", tiny_network().ids("paper")
    vectors = np.random.default_rng(0).normal(size=(len(ids), 4))
    pl.DataFrame({"id": ids, "vector": vectors}).write_parquet(file)  # whoever made it knows of no types
    main(["map", str(run), "--vectors", str(file), "--max-nodes", "20"])
    assert ids_in(tmp_path / "other.parquet.map" / "map.html") < set(ids)
    main(["map", str(run), "--vectors", str(file), "--max-nodes", "20", "--out", str(tmp_path / "here")])
    assert (tmp_path / "here" / "map.png").is_file()
    assert not (run / "map").exists()


def test_mistakes_are_told_before_vectors_are_made(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_store, "embed_to", None)
    known = "expected some of 'paper', 'author', 'venue'"
    assert failed(capsys, run, "--types", "poem") == f"--types has 'poem', {known}."
    assert "--classes has 'poetry', expected a label of paper nodes: " in failed(
        capsys, run, "--classes", "poetry"
    )
    assert failed(capsys, run, "--perplexity", 0) == "--perplexity is 0.0, expected at least 1."
    assert "not a run, expected a folder" in failed(capsys, run.parent)
    assert not (run / "map").exists()
