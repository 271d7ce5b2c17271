from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from heterformer.errors import InputError
from heterformer.evaluation.open_run import open_run
from heterformer.network.store import Network
from heterformer.training.run import Run
from heterformer.training.train import train
from tests.embedding.growing import first_run, grown_state
from tests.evaluation.cheater import Cheater
from tests.evaluation.held_out_pairs import link_prediction_of
from tests.learning import tiny_network, tiny_options, tiny_reader


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    options = tiny_options(tiny_reader(), max_steps=12, evaluate_every=3, seed=3)
    return train(tiny_network(), tmp_path_factory.mktemp("runs") / "run", options)


def test_opens_the_best_model(run: Run) -> None:
    opened = open_run(run.path)
    best = load_file(run.best / "model.safetensors")
    assert all(torch.equal(value, best[name]) for name, value in opened.model.state_dict().items())
    assert not opened.model.training
    assert opened.seed == 3


def test_opens_the_runs_own_split(run: Run) -> None:
    split = run.split(tiny_network())
    opened = open_run(run.path)
    for part in ("train", "validation", "test"):
        assert np.array_equal(getattr(opened.split, part), getattr(split, part))


def test_opens_a_run_that_is_not_finished(run: Run, tmp_path: Path) -> None:
    for name in ("config.yaml", "config.json", "split.parquet", "tokenizer.json", "tokenizer_config.json"):
        shutil.copy(run.path / name, tmp_path / name)
    shutil.copytree(run.path / "checkpoints", tmp_path / "checkpoints")
    results = [link_prediction_of(open_run(path), ("test",)) for path in (run.path, tmp_path)]
    assert results[0] == results[1]


def test_the_validation_figure_is_the_one_that_training_saw(run: Run) -> None:
    seen = [line["validation"] for line in run.metrics() if "validation" in line]
    best = max(seen, key=lambda figures: figures["prec"])
    (found,) = link_prediction_of(open_run(run.path), ("validation",))
    assert {name: found.metrics[name] for name in best} == pytest.approx(best)


def test_the_figures_are_the_same_every_time(run: Run) -> None:
    once, again = (link_prediction_of(open_run(run.path), ("validation", "test")) for _ in range(2))
    assert [result.part for result in once] == ["validation", "test"]
    assert once == again


def test_no_held_out_pair_is_visible(run: Run) -> None:
    opened = open_run(run.path)
    cheater = replace(opened, model=Cheater(opened.network))
    for result in link_prediction_of(cheater, ("validation", "test")):
        keys = len(np.unique(getattr(opened.split, result.part)[:, 1]))
        assert result.metrics["mrr"] == result.metrics["alone_mrr"] == pytest.approx(1 / keys)
        assert result.metrics["hits_100"] == 0


@pytest.mark.parametrize(("correction", "weight"), [("auto", 1.0), (0.25, 0.75), (1.5, 0.0)])
def test_scores_lack_the_links_that_training_did_not_correct_for(
    run: Run, monkeypatch: pytest.MonkeyPatch, correction: float | Literal["auto"], weight: float
) -> None:
    options = replace(run.options(), popularity_correction=correction)
    monkeypatch.setattr(Run, "options", lambda _: options)
    opened = open_run(run.path)
    assert opened.link_weight(opened.network.schema.relation("cites")) == weight
    assert opened.link_weight(opened.network.schema.relation("written_by")) == 0  # nothing is trained of it


def test_what_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        open_run(tmp_path)
    assert str(caught.value) == f"{tmp_path}: not a run, expected a folder that 'heterformer train' wrote."


def test_a_run_without_a_checkpoint(tmp_path: Path) -> None:
    Run(tmp_path).start(tiny_network(), tiny_options(tiny_reader()))
    with pytest.raises(InputError) as caught:
        open_run(tmp_path)
    assert str(caught.value) == f"{tmp_path}: has no checkpoint yet; run 'heterformer train' again."


def test_a_run_whose_network_has_gone_or_changed(run: Run, tmp_path: Path) -> None:
    network = shutil.copytree(tiny_network().path, tmp_path / "net")
    Run(tmp_path / "run").start(Network.open(network), tiny_options(tiny_reader()))
    described = json.loads((network / "network.json").read_text())
    (network / "network.json").write_text(json.dumps(described | {"fingerprint": "0" * 32}))
    with pytest.raises(InputError, match="is not the network it was trained on"):
        open_run(tmp_path / "run")
    shutil.rmtree(network)
    with pytest.raises(InputError, match="net: not a network, expected a folder"):
        open_run(tmp_path / "run")


def test_another_network_is_asked_for_the_runs_pairs_and_for_new_ones() -> None:
    run, grown = first_run("heterformer"), grown_state().built()
    own, opened = open_run(run.path), open_run(run.path, network=grown.path)
    assert (own.is_other_network, opened.is_other_network) == (False, True)
    assert opened.notes == [
        "2 paper nodes are new since training.",
        "1 author nodes are new since training.",
        "1 venue nodes are new since training.",
    ]
    assert len(opened.split.test) == len(own.split.test)
    assert {opened.network.ids("paper", [row])[0] for row in opened.split.first.new[:, 0]} == {
        "new-1",
        "new-2",
    }
    assert opened.network.ids("author", opened.split.hidden["author"]) == ["new author"]
    cheater = replace(
        opened, model=Cheater(opened.network)
    )  # which finds any pair that a neighbourhood shows
    for result in link_prediction_of(cheater, ("validation", "test", "new")):
        keys = len(np.unique(opened.split.part(result.part)["cites"][:, 1]))  # type: ignore[arg-type]
        assert result.metrics["mrr"] == pytest.approx(1 / keys)


def test_without_the_runs_own_network_nothing_is_called_new(tmp_path: Path) -> None:
    run = Run(shutil.copytree(first_run("heterformer").path, tmp_path / "run"))
    own = Path(run.config()["network"])
    text = (run.path / "config.yaml").read_text()
    (run.path / "config.yaml").write_text(text.replace(str(own), str(tmp_path / "gone")))
    opened = open_run(run.path, network=grown_state().built().path)
    assert opened.notes == ["The run's own network cannot be opened, so no node is known to be new."]
    assert len(opened.split.first.new) == 0
    assert opened.split.hidden == {}


def test_a_run_without_a_split_on_another_network(tmp_path: Path) -> None:
    run = Run(shutil.copytree(first_run("heterformer").path, tmp_path / "run"))
    (run.path / "split.parquet").unlink()
    with pytest.raises(InputError, match=r"has no split\.parquet yet"):
        open_run(run.path, network=grown_state().built().path)
