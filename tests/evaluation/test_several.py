"""Several processes rank together as one does alone."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path

import pytest

from heterformer.cli.main import main
from heterformer.distributed import ProcessGroup
from heterformer.evaluation import pair_ranking
from heterformer.evaluation.open_run import open_run
from heterformer.evaluation.pair_ranking import RankingSizes
from heterformer.training.run import Run
from heterformer.training.train import train
from tests.evaluation.held_out_pairs import link_prediction_of
from tests.learning import tiny_network, tiny_options, tiny_reader
from tests.training.several import said, together

PARTS = ("validation", "test")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    options = tiny_options(tiny_reader(), max_steps=12, evaluate_every=3)
    return train(tiny_network(), tmp_path_factory.mktemp("runs") / "run", options)


def rank_to(path: Path, out: Path) -> None:
    """Leave this process's figures, and how many candidates it embedded for them."""
    met, candidates = 0, pair_ranking._candidates

    def counted(*arguments: object) -> object:
        nonlocal met
        for start, vectors in candidates(*arguments):  # type: ignore[arg-type]
            met += len(vectors) * (vectors.shape[1] > 1)  # popularity has one number
            yield start, vectors

    pair_ranking._candidates = counted  # type: ignore[assignment]
    processes, sizes = ProcessGroup.from_environment(), RankingSizes(candidates=5)
    figures = link_prediction_of(open_run(path), PARTS, processes, sizes)
    found = {"figures": [asdict(one) for one in figures], "candidates": met}
    (out / f"{os.environ['RANK']}.json").write_text(json.dumps(found))


@pytest.mark.parametrize("count", [2, 3])
def test_several_processes_rank_as_one(run: Run, tmp_path: Path, count: int) -> None:
    codes = together(tmp_path, count, rank_to, run.path, tmp_path)
    assert codes == [0] * count, said(tmp_path, 0)
    found = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(count)]
    expected = [asdict(one) for one in link_prediction_of(open_run(run.path), PARTS)]
    for each in found:
        assert each["figures"] == json.loads(json.dumps(expected))
        assert each["candidates"] > 0
    whole = tiny_network().schema.counts[tiny_network().schema.predicted[0].target]
    assert sum(each["candidates"] for each in found) == whole
    assert not list(run.path.glob(".heterformer-*"))  # the states that they shared


def test_the_command_reports_once(run: Run, tmp_path: Path) -> None:
    """The first process writes the page and shows it; figures are those of one process."""
    words = ["evaluate", str(run.path), "--tasks", "link_prediction"]
    main(words)
    expected = json.loads((run.path / "report.json").read_text())["link_prediction"]
    (run.path / "report.json").unlink()
    codes = together(tmp_path, 2, main, words)
    assert codes == [0, 0], said(tmp_path, 0)
    assert json.loads((run.path / "report.json").read_text())["link_prediction"] == expected
    assert "report.md" in said(tmp_path, 0)
    assert said(tmp_path, 1) == ""


def test_vectors_from_elsewhere_are_for_one_process(run: Run, tmp_path: Path) -> None:
    words = ["evaluate", str(tiny_network().path), "--vectors", str(tmp_path / "v.parquet")]
    assert together(tmp_path, 2, main, words) == [1, 1]
    told = said(tmp_path, 0)
    assert "'heterformer evaluate --vectors' runs in one process, but 2 were started" in told
