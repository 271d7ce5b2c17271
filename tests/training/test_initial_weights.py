"""Runs that start from another run: from its text encoder, or from all it has learnt."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from heterformer.cli.training_flags import training_defaults
from heterformer.errors import InputError
from heterformer.models.options import MODEL_OPTIONS, BertOptions, HeterformerOptions
from heterformer.models.plm.backbone import load_backbone
from heterformer.models.plm.loading import load_plm_config
from heterformer.models.plm.reading import suited_options
from heterformer.network.ids import known_rows
from heterformer.network.store import Network
from heterformer.training.learner import Learner
from heterformer.training.options import TrainingOptions
from heterformer.training.run import Run
from heterformer.training.train import train
from heterformer.training.warm_up_options import WarmUpOptions
from tests.learning import synthetic_network, tiny_network, tiny_options, tiny_reader
from tests.training.runs import LAST, differ, options, trained

NO_PROMPTS = {"query_prompt": "", "document_prompt": ""}
READING: dict[str, Any] = {"readout": "mean", "normalize": "yes", "temperature": 0.1}


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return trained(tmp_path_factory.mktemp("bert") / "run", model="bert", max_steps=3, **READING)


@pytest.fixture(scope="module")
def heterformer(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return trained(tmp_path_factory.mktemp("heterformer") / "run", max_steps=4)


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Network:
    """The same kind of network with more papers, authors among them that the other one lacks."""
    return synthetic_network(tmp_path_factory.mktemp("grown"), papers=260)


def learner(path: Path, network: Network, asked: TrainingOptions) -> Learner:
    run = Run(path)
    run.start(network, asked)
    return Learner(network, run, asked)


# --- The text encoder of a run ----------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["heterformer", "bert_hgt", "graph_formers", "bert"])
def test_any_model_takes_the_text_encoder_of_any_run(model: str, bert: Run, tmp_path: Path) -> None:
    asked = options(model=model, backbone=str(bert.path)).resolved()
    found = learner(tmp_path / "run", tiny_network(), asked).model
    weights = load_file(bert.path / "model.safetensors")
    for name, value in found.backbone.state_dict().items():
        assert torch.equal(value, weights[f"backbone.{name}"]), name
    assert found.config.readout == "mean"
    assert found.config.normalize is True
    assert found.config.temperature == 0.1


def test_a_run_of_a_run_of_a_run(heterformer: Run, tmp_path: Path) -> None:
    second = trained(tmp_path / "second", model="bert_hgt", backbone=str(heterformer.path), max_steps=2)
    weights = load_file(second.path / "model.safetensors")
    third = load_backbone(str(second.path))
    assert all(torch.equal(v, weights[f"backbone.{n}"]) for n, v in third.state_dict().items())
    assert load_plm_config(second.path).hidden_size == load_plm_config(tiny_reader()).hidden_size


def test_a_run_is_read_as_it_was_trained(bert: Run, heterformer: Run) -> None:
    assert suited_options(str(bert.path)) == {**READING, "neighbor_pooling": "mean", **NO_PROMPTS}
    expected = {"readout": "cls", "normalize": "no", "temperature": 1.0, "neighbor_pooling": "cls"}
    assert suited_options(str(heterformer.path)) == expected | NO_PROMPTS
    chosen = HeterformerOptions(backbone=str(bert.path), readout="cls").resolved()
    assert (chosen.readout, chosen.normalize, chosen.neighbor_pooling) == ("cls", "yes", "mean")


def test_a_folder_of_the_current_directory_is_nobodys_backbone(
    bert: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(bert.path)
    assert suited_options("")["temperature"] == 1.0


def test_a_model_without_a_text_encoder_is_no_backbone(tmp_path: Path) -> None:
    words = trained(tmp_path / "words", model="mean_sage", max_steps=1)
    with pytest.raises(InputError, match="words: is a model without a text encoder"):
        trained(tmp_path / "run", backbone=str(words.path))


def test_an_unfinished_run_is_no_backbone(bert: Run, tmp_path: Path) -> None:
    copy = shutil.copytree(bert.path, tmp_path / "copy")
    (copy / "model.safetensors").unlink()
    with pytest.raises(InputError, match=r"copy: has no model.safetensors; finish its training first"):
        trained(tmp_path / "run", backbone=str(copy))


def test_who_may_have_seen_the_held_out_pairs_is_named(
    bert: Run, grown: Network, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trained(tmp_path / "same", model="bert", backbone=str(bert.path), max_steps=1)
    assert "figures may be too good" not in capsys.readouterr().err
    train(grown, tmp_path / "other", options(model="bert", backbone=str(bert.path), max_steps=1))
    assert "maybe on pairs that are held out here; figures may be too good" in capsys.readouterr().err


# --- The whole model of a run -----------------------------------------------------------------------------


def started_from(init: Run, path: Path, network: Network, **changes: Any) -> Run:
    values: dict[str, Any] = {"init": str(init.path), "max_steps": 1, "device": "cpu", "batch_size": 16}
    # Rates of nearly nothing: what is left after a step is what the run started with.
    names = ("learning_rate", "new_learning_rate", "gate_learning_rate", "textless_learning_rate")
    rates = dict.fromkeys(names, 1e-12)
    return train(network, path, TrainingOptions.from_flat(values | rates | changes))


def test_the_same_network_starts_where_the_run_ended(heterformer: Run, tmp_path: Path) -> None:
    run = started_from(heterformer, tmp_path / "run", tiny_network())
    before, after = (load_file(r.path / "model.safetensors") for r in (heterformer, run))
    assert before.keys() == after.keys()
    assert all(torch.allclose(before[name], after[name], atol=1e-6) for name in before)
    assert not any("warm_up" in line for line in run.metrics())
    assert run.options().model == heterformer.options().model


def test_a_grown_network_keeps_known_nodes_and_folds_the_others_in(
    heterformer: Run, grown: Network, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = started_from(heterformer, tmp_path / "run", grown)
    before, after = heterformer.model(), run.model()
    for name, value in before.state_dict().items():
        if not name.startswith("textless.tables"):
            assert torch.allclose(value, after.state_dict()[name], atol=1e-6), name
    rows = known_rows(grown.id_series("author"), tiny_network().id_series("author"))
    assert (rows < 0).any()
    old, new = (model.textless.parameters_of("author")[0].detach() for model in (before, after))
    met = torch.from_numpy(np.flatnonzero(rows >= 0))
    assert torch.allclose(new[met], old[torch.from_numpy(rows[rows >= 0])], atol=1e-6)
    drawn = new[torch.from_numpy(np.flatnonzero(rows < 0))]
    assert drawn.isfinite().all()
    assert drawn.std() > 0
    assert len(new) == grown.schema.counts["author"]
    assert f"starts from {heterformer.path}; {(rows < 0).sum():,} new author nodes" in capsys.readouterr().err


def test_a_run_that_starts_from_another_resumes_to_the_same_numbers(
    heterformer: Run, grown: Network, tmp_path: Path
) -> None:
    first, last = (options(init=str(heterformer.path), max_steps=steps) for steps in (2, 6))
    whole = train(grown, tmp_path / "whole", last)
    train(grown, tmp_path / "parts", first)
    parts = train(grown, tmp_path / "parts", last)
    assert not differ(parts, whole)
    assert not differ(parts, whole, LAST[1])


def test_the_options_of_the_model_are_the_runs(heterformer: Run, bert: Run) -> None:
    assert TrainingOptions.from_flat({"init": str(bert.path)}).model == bert.options().model
    changed = TrainingOptions.from_flat({"init": str(heterformer.path), "temperature": 0.5}).model
    assert (changed.temperature, changed.textless_dim) == (0.5, 8)  # type: ignore[attr-defined]
    assert training_defaults(["--init", str(bert.path)]).model == bert.options().model
    other = training_defaults(["--init", str(bert.path), "--model", "bert_gat"]).model
    assert isinstance(other, MODEL_OPTIONS["bert_gat"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": "bert_gat"}, "^init names a heterformer in '.*', expected a bert_gat, as model says.$"),
        ({"textless_dim": 5}, "its weights do not fit the model that was asked for"),
    ],
)
def test_what_does_not_fit_is_refused(
    changes: dict[str, Any], message: str, heterformer: Run, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        started_from(heterformer, tmp_path / "run", tiny_network(), **changes)


def test_other_types_are_refused(heterformer: Run, tmp_path: Path) -> None:
    other = tmp_path / "copy"
    shutil.copytree(heterformer.path, other)
    config = (other / "config.json").read_text()
    (other / "config.json").write_text(config.replace('"venue"', '"journal"'))
    with pytest.raises(InputError, match="the network's types without text are author, venue"):
        started_from(Run(other), tmp_path / "run", tiny_network())


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^init is '.*', expected the folder of a run"):
        TrainingOptions.from_flat({"init": str(tmp_path)})
    assert tiny_options("x", warm_up=WarmUpOptions()).init is None
    assert BertOptions().backbone == "minilm"
