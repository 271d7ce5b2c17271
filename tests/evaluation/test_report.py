"""The page of an evaluation."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from heterformer.cli.main import main
from heterformer.embedding.embed import embed_run
from heterformer.evaluation import report as evaluating
from heterformer.network.split.draw import make_split
from heterformer.network.split.options import SplitOptions
from heterformer.network.store import Network
from heterformer.search.store import SearchStore
from heterformer.tables import four_digits
from heterformer.training.run import Run
from tests.embedding.growing import first_run, grown_state
from tests.failing import Failed
from tests.learning import tiny_network
from tests.processor import with_bf16, without_bf16
from tests.training.test_commands import train

QUICK = ("--classification.repeats", "1", "--classification.max-epochs", "2", "--clustering.runs", "1")
MAP = ("--map.max-nodes", "60")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "my run"
    train(path, "--widths", "8", "2")
    return path


def test_a_run_gets_a_page_with_all_tasks(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["evaluate", str(run), *QUICK, *MAP])
    shown = capsys.readouterr().out
    page, values = (run / "report.md").read_text(), json.loads((run / "report.json").read_text())
    assert page.startswith("# Heterformer on synthetic\n")
    assert "heterformer train" in page
    for heading in ("Link prediction", "Node classification", "Node clustering", "Map", "Training"):
        assert f"\n## {heading}\n" in page
    for name in ("map.png", "map.html", "training.png"):
        assert f"(figures/{name})" in page
        assert (run / "figures" / name).is_file()
    figure = four_digits(values["link_prediction"]["cites"]["test"]["full"]["mrr"])
    assert figure in page
    assert figure in shown
    assert list(values["by_width"]) == ["16", "8", "2"]
    cut = four_digits(values["by_width"]["2"]["cites"]["test"]["full"]["mrr"])
    assert cut in page.partition("## Link prediction by width")[2]
    assert cut in shown
    told = values["classification"][0]["result"]["scores"]["mlp"]["micro"]["mean"]
    assert four_digits(told) in page
    assert four_digits(values["clustering"][0]["result"]["nmi"]["mean"]) in page
    assert "†written_by" in page
    assert values["seen_in_training"] == ["written_by", "published_in"]
    assert str(run / "report.md") in shown.replace("\n", "")


def test_the_page_says_how_it_was_made(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chosen = ["--tasks", "link_prediction", "--parts", "test", "--labels.min-members", "7"]
    chosen += ["--precision", "bf16"]
    main(["evaluate", str(run), *chosen, "--json"])
    printed = json.loads(capsys.readouterr().out)["evaluation"]
    page, values = (run / "report.md").read_text(), json.loads((run / "report.json").read_text())
    assert printed == values["evaluation"]
    command = shlex.split(values["evaluation"]["command"])
    assert command[:3] == ["heterformer", "evaluate", str(run)]
    assert set(command[3:]) == set(chosen)
    assert values["evaluation"]["command"] in page
    assert values["evaluation"]["options"]["labels"]["min_members"] == 7
    for flag in ("--labels.min-members 7", "--classification.hidden 200", "--clustering.seed 0"):
        assert f"\n{flag}\n" in page
    main([*command[1:], "--json"])
    assert json.loads(capsys.readouterr().out) == values


@pytest.mark.parametrize(("choose", "precision"), [(with_bf16, "bf16"), (without_bf16, "float32")])
def test_the_page_says_which_precision_was_chosen(
    run: Path,
    choose: Callable[[pytest.MonkeyPatch], None],
    precision: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    choose(monkeypatch)
    main(["evaluate", str(run), "--tasks", "link_prediction", "map", "--parts", "test", "--json"])
    how = json.loads(capsys.readouterr().out)["evaluation"]
    assert (how["precision"], how["options"]["precision"]) == (precision, precision)
    assert f"--precision {precision}" in how["command"]
    assert f"\nVectors were computed in {precision}.\n" in (run / "report.md").read_text()
    store = SearchStore.open(Run(run), Run(run).network())
    assert store.vectors.metadata["precision"] == precision  # one for all tasks


def test_other_tasks_stay_on_the_page_if_nothing_changed(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["evaluate", str(run), *QUICK, *MAP])
    page, values = (run / "report.md").read_text(), json.loads((run / "report.json").read_text())
    for task in ("link_prediction", "clustering", "classification", "map"):
        capsys.readouterr()
        main(["evaluate", str(run), *QUICK, *MAP, "--tasks", task])
        assert "from the earlier report" in capsys.readouterr().err
        again = json.loads((run / "report.json").read_text())
        assert sorted(again["notes"]) == sorted(values["notes"])
        assert again | {"notes": values["notes"]} == values
        assert (run / "report.md").read_text().split("## Notes")[0] == page.split("## Notes")[0]
    capsys.readouterr()
    other = ["--tasks", "clustering", "--labels.min-members", "4"]
    main(["evaluate", str(run), *QUICK, *MAP, *other])
    told = capsys.readouterr().err.replace("\n", " ")
    assert "the report is replaced; its classification had other options." in told
    left = json.loads((run / "report.json").read_text())
    assert (left["classification"], left["link_prediction"]) == ([], values["link_prediction"])
    assert left["evaluation"]["options"]["tasks"] == ["link_prediction", "clustering", "map"]
    assert "## Map" in (run / "report.md").read_text()


def test_a_network_that_has_grown_gets_a_page_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = shutil.copytree(first_run("heterformer").path, tmp_path / "run")
    state = grown_state()
    asked = pl.read_parquet(run / "split.parquet").filter(pl.col("part") == "test").row(0, named=True)
    gone = (asked["query"], asked["key"])
    network = replace(state, cites=tuple(pair for pair in state.cites if pair != gone)).built()
    words = ["--network", str(network.path), "--tasks", "link_prediction"]
    main(["evaluate", str(run), *words, "--parts", "test"])
    shown = " ".join(capsys.readouterr().out.split())
    page, values = (run / "net.report" / f"report.{ending}" for ending in ("md", "json"))
    figures = json.loads(values.read_text())
    assert list(figures["link_prediction"]["cites"]) == ["test", "new"]
    assert figures["link_prediction"]["cites"]["new"]["pairs"] == 2
    assert "new: pairs of nodes that the network has got since training" in shown
    assert "- 2 paper nodes are new since training." in page.read_text()
    lost = f"test pairs are gone from the network, such as {gone[0]!r} to {gone[1]!r}; they are left out."
    assert any(note.startswith("cites: 1 of ") and note.endswith(lost) for note in figures["notes"])
    assert lost.split(",")[0] in shown
    assert not (run / "report.md").exists()  # which is of the run's own network
    assert f"--network {network.path}" in figures["evaluation"]["command"]
    assert str(first_run("heterformer").config()["network"]) in figures["command"]
    main(shlex.split(figures["evaluation"]["command"])[1:])
    assert json.loads(values.read_text()) == figures
    main(["evaluate", str(run), *words, "--out", str(tmp_path / "page")])
    assert (tmp_path / "page" / "report.md").is_file()


def test_nothing_of_other_vectors_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, network = tmp_path / "own.parquet", tiny_network()
    ids = network.ids("paper")
    for seed, task in enumerate(("link_prediction", "clustering")):
        vectors = np.random.default_rng(seed).normal(size=(len(ids), 4))
        pl.DataFrame({"id": ids, "vector": vectors}).write_parquet(file)
        main(["evaluate", str(network.path), "--vectors", str(file), *QUICK, "--tasks", task])
    told = capsys.readouterr().err.replace("\n", " ")
    assert "the report is replaced; its link prediction had another model or other options." in told
    values = json.loads((tmp_path / "own.parquet.report" / "report.json").read_text())
    assert values["link_prediction"] == {}
    assert values["clustering"]


def test_ids_in_vectors_may_be_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As pandas makes them of ids such as 17; figures are those of the same ids as text."""
    count, rng = 60, np.random.default_rng(0)
    titles = [f"word{i % 3} of {i}" for i in range(count)]
    papers = pl.DataFrame({"id": range(100, 100 + count), "title": titles})
    links = {"source": rng.integers(100, 100 + count, 240), "target": rng.integers(100, 100 + count, 240)}
    cites = {"from": "paper", "to": "paper", "columns": ["source", "target"]}
    spec = {"nodes": {"paper": {"text": "title"}}, "relations": {"cites": cites}}
    network = Network.from_frames(spec, {"paper": papers}, {"cites": links}, tmp_path / "numbers.net")
    vectors = rng.normal(size=(count, 4))
    figures = []
    for ids in (papers["id"], papers["id"].cast(pl.String)):
        file = tmp_path / f"{ids.dtype}.parquet"
        pl.DataFrame({"id": ids, "vector": vectors}).write_parquet(file)
        words = ["--vectors", str(file), "--tasks", "link_prediction", "--json"]
        main(["evaluate", str(network.path), *words])
        figures.append(json.loads(capsys.readouterr().out)["link_prediction"])
    assert figures[0] == figures[1]
    assert figures[0]["cites"]


def test_tasks_can_be_chosen_and_printed_as_json(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["evaluate", str(run), "--tasks", "link_prediction", "--parts", "test", "--json"])
    values = json.loads(capsys.readouterr().out)
    assert values == json.loads((run / "report.json").read_text())
    assert list(values["link_prediction"]["cites"]) == ["test"]
    assert values["classification"] == values["clustering"] == []
    assert "## Map" not in (run / "report.md").read_text()


def test_vectors_of_any_method_get_the_same_page(run: Path, tmp_path: Path) -> None:
    file = tmp_path / "own.parquet"
    embed_run(run, file)
    main(["evaluate", str(tiny_network().path), "--vectors", str(file), *QUICK, *MAP])
    page = (tmp_path / "own.parquet.report" / "report.md").read_text()
    assert page.startswith("# own.parquet on synthetic\n")
    assert "\nVectors were computed in float32.\n" in page  # as the file says
    assert (tmp_path / "own.parquet.report" / "figures" / "map.html").is_file()
    flags = ["--vectors", str(file), "--out", str(tmp_path / "page"), "--tasks", "clustering", "--json"]
    main(["evaluate", *flags, str(tiny_network().path)])
    assert "## Node clustering" in (tmp_path / "page" / "report.md").read_text()
    # The precision option is that of a run's vectors; these are there already.
    flags = [*flags[:4], "--tasks", "link_prediction", "--precision", "bf16"]
    main(["evaluate", *flags, str(tiny_network().path)])
    page = (tmp_path / "page" / "report.md").read_text()
    assert "## Node clustering" in page
    assert "\nVectors were computed in float32.\n" in page


def test_whoever_evaluates_vectors_that_saw_the_pairs_is_told(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network = tiny_network()

    def told(file: Path) -> tuple[str, str, dict[str, Any]]:
        capsys.readouterr()
        words = ["--split", str(run / "split.parquet"), "--tasks", "link_prediction"]
        main(["evaluate", str(network.path), "--vectors", str(file), *words])
        folder = tmp_path / f"{file.name}.report"
        values = json.loads((folder / "report.json").read_text())
        return capsys.readouterr().out, (folder / "report.md").read_text(), values

    main(["embed", str(run), str(tmp_path / "whole.parquet")])
    main(["embed", str(run), str(tmp_path / "hiding.parquet"), "--hide-split"])
    main(["embed", str(run), str(tmp_path / "hiding"), "--hide-split"])
    shown, page, values = told(tmp_path / "whole.parquet")
    assert values["seen_by_vectors"] == ["cites", "written_by", "published_in"]
    assert "These pairs were visible when the vectors were made, which inflates the metrics: cites" in page
    assert "hide_split hides" in page
    assert "‡cites" in shown
    assert "hide_split hides" in shown
    flattered = values["link_prediction"]["cites"]["test"]["full"]["mrr"]
    for name in ("hiding.parquet", "hiding"):
        shown, page, values = told(tmp_path / name)
        assert values["seen_by_vectors"] == ["written_by", "published_in"]  # drawn for the evaluation
        assert "‡cites" not in shown
        assert "inflates the metrics: written_by, published_in." in page
        assert values["link_prediction"]["cites"]["test"]["full"]["mrr"] != flattered
    frame = pl.read_parquet(tmp_path / "hiding.parquet").select("id", "type", "vector")
    frame.write_parquet(tmp_path / "unknown.parquet")
    shown, page, values = told(tmp_path / "unknown.parquet")
    assert values["seen_by_vectors"] is None
    assert "link prediction may flatter them" in page
    assert "‡" not in shown


def test_vectors_that_hid_the_pairs_of_another_split_saw_those_asked_for(run: Path, tmp_path: Path) -> None:
    other = make_split(tiny_network(), SplitOptions(seed=5))
    other.save(tmp_path / "other.parquet", tiny_network())
    embed_run(run, tmp_path / "v.parquet", hide_split=True)
    words = ["--vectors", str(tmp_path / "v.parquet"), "--tasks", "link_prediction"]
    main(["evaluate", str(tiny_network().path), *words, "--split", str(tmp_path / "other.parquet")])
    values = json.loads((tmp_path / "v.parquet.report" / "report.json").read_text())
    assert "cites" in values["seen_by_vectors"]


def test_a_mistake_about_the_map_shows_before_the_work(
    run: Path, failed: Failed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluating, "evaluate_run", lambda *_: pytest.fail("tasks were done"))
    assert "has 'papre'" in failed(main, ["evaluate", str(run), "--map.types", "papre"])
    assert "has 'nosuch'" in failed(main, ["evaluate", str(run), "--map.classes", "nosuch"])


def test_a_map_that_cannot_be_drawn_is_a_note_unless_it_was_asked_for(tmp_path: Path, failed: Failed) -> None:
    file, network = tmp_path / "venues.parquet", tiny_network()
    ids = network.ids("venue")
    pl.DataFrame({"id": ids, "type": ["venue"] * len(ids), "vector": np.eye(len(ids))}).write_parquet(file)
    command = ["evaluate", str(network.path), "--vectors", str(file), "--map.types", "paper"]
    said = failed(main, [*command, "--tasks", "map"])
    why = "No map: types has 'paper', but there are vectors of 'venue' only."
    assert said == why
    assert not (tmp_path / "venues.parquet.report" / "report.md").exists()
    main([*command, *QUICK])
    assert f"- {why}\n" in (tmp_path / "venues.parquet.report" / "report.md").read_text()


def test_mistakes_are_one_sentence(run: Path, tmp_path: Path, failed: Failed) -> None:
    said = failed(main, ["evaluate", str(run), "--out", str(tmp_path)])
    assert said == "--out needs --vectors or --network; the report of a run is written into the run."
    both = ["--vectors", "x.parquet", "--network", "y.net"]
    said = failed(main, ["evaluate", str(run), *both])
    assert said == "--network goes with a run; with --vectors the network comes first."
    said = failed(main, ["evaluate", str(run), "--split", "x.parquet"])
    assert said == "--split applies only to vectors; a run uses its own split."
    (tmp_path / "file").write_text("x")
    said = failed(main, ["evaluate", str(tiny_network().path), "--vectors", str(tmp_path / "file")])
    assert "holds no vectors" in said
    assert not (tmp_path / "file.report").exists()
    said = failed(main, ["evaluate", str(run), "--parts"])
    assert said == "--parts is empty, expected validation, test or both."
