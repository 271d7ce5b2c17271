"""How a run finds out what suits its backbone, says so, and keeps to it."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heterformer.errors import InputError
from heterformer.models.options import HeterformerOptions
from heterformer.models.registry import MODELS
from heterformer.network.schema import Relation
from heterformer.network.split.draw import make_split
from heterformer.training import reading
from heterformer.training.options import TrainingOptions
from heterformer.training.reading import read_as_saved, read_as_suits
from heterformer.training.run import Run
from tests.learning import tiny_network, tiny_reader
from tests.models.plm.test_reading import E5, POOLING, sentence_transformer
from tests.models.random_batches import new_model, save_backbone, schema
from tests.shop import shop, shop_reader
from tests.training.runs import differ, trained

OPEN = {"readout": "auto", "normalize": "auto", "temperature": "auto", "neighbor_pooling": "auto"}


def no_pairs() -> Any:
    raise AssertionError("the files say it all")


def e5(folder: Path) -> str:
    shutil.copytree(tiny_reader(), folder)
    return sentence_transformer(folder, {"mean_tokens": True}, POOLING, **E5)


def test_files_decide_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = HeterformerOptions(backbone=e5(tmp_path / "e5"), temperature=0.3)
    found = read_as_suits(asked, tiny_network(), no_pairs, "RUN")
    chosen = (
        found.readout,
        found.normalize,
        found.temperature,
        found.neighbor_pooling,
        found.document_prompt,
    )
    assert chosen == ("mean", "no", 0.3, "mean", "passage: ")
    said = "".join(capsys.readouterr())
    assert "RUN: backbone" in said
    assert "its files say" in said
    assert "readout mean" in said
    assert "document_prompt passage: " in said
    assert "temperature" not in said, "it was given"


def test_a_look_decides_the_rest(capsys: pytest.CaptureFixture[str]) -> None:
    pairs = make_split(tiny_network()).train
    asked = HeterformerOptions(backbone=tiny_reader(), normalize="yes")
    found = read_as_suits(asked, tiny_network(), lambda: pairs, "RUN")
    inspection = reading.look_at_texts(tiny_reader(), tiny_network(), pairs)
    assert inspection is not None
    seen = inspection.options()
    assert {name: getattr(found, name) for name in seen} == seen | {"normalize": "yes"}
    assert (found.query_prompt, found.document_prompt) == ("", "")
    assert f"a look at the texts says neighbor_pooling {seen['neighbor_pooling']}" in "".join(
        capsys.readouterr()
    )


def test_nodes_without_text_cannot_be_looked_at(capsys: pytest.CaptureFixture[str]) -> None:
    asked = HeterformerOptions(backbone=shop_reader(), normalize="yes")
    found = read_as_suits(asked, shop(), lambda: make_split(shop()).train, "RUN")
    assert (found.readout, found.normalize, found.temperature) == ("cls", "yes", 1.0)
    said = " ".join("".join(capsys.readouterr()).split())
    taken = "neighbor_pooling cls, readout cls, temperature 1.0 as in the paper."
    assert f"user nodes of 'bought' have no text to look at, so {taken}" in said


def test_a_hubs_files_decide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sentence_transformer(tmp_path / "e5", {"mean_tokens": True}, POOLING, **E5)
    asked_for = []

    def cached_file(name: str, file: str, **options: Any) -> str | None:
        asked_for.append((name, file))
        path = tmp_path / "e5" / file
        return str(path) if path.is_file() else None

    monkeypatch.setattr("transformers.utils.hub.cached_file", cached_file)
    monkeypatch.setattr("huggingface_hub.get_hf_file_metadata", lambda url: None)  # it is there
    found = read_as_suits(HeterformerOptions(backbone="some/e5"), tiny_network(), no_pairs, "RUN")
    assert (found.readout, found.normalize, found.neighbor_pooling) == ("mean", "no", "mean")
    assert (found.query_prompt, found.document_prompt) == ("query: ", "passage: ")
    assert ("some/e5", "1_Pooling/config.json") in asked_for
    assert "backbone 'some/e5': its files say neighbor_pooling mean" in "".join(capsys.readouterr())


def test_nobody_is_looked_at_twice() -> None:
    pairs = make_split(tiny_network()).train
    inspection = reading.look_at_texts(tiny_reader(), tiny_network(), pairs)
    assert inspection is not None
    looked_at = len(inspection.right["cls", "no"])
    assert 2 <= looked_at <= min(len(set(pairs[:, 0])), len(set(pairs[:, 1])))
    assert reading.look_at_texts(tiny_reader(), tiny_network(), pairs[:1]) is None


def test_a_run_keeps_what_it_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Resumed by the same command, without another look and to the same bits."""
    whole = trained(tmp_path / "whole", max_steps=3, **OPEN)
    kept = whole.options().model
    assert "auto" not in vars(kept).values()
    trained(tmp_path / "stopped", max_steps=1, **OPEN)
    monkeypatch.setattr(reading, "look_at_texts", no_pairs)
    resumed = trained(tmp_path / "stopped", max_steps=3, **OPEN)
    assert resumed.options().model == kept
    assert not differ(resumed, whole)
    config = json.loads((whole.path / "config.json").read_text())
    assert config["neighbor_pooling"] == kept.neighbor_pooling  # type: ignore[attr-defined]
    with pytest.raises(Exception, match="cannot resume with"):
        trained(tmp_path / "stopped", max_steps=3, **OPEN | {"readout": "mean"})


def test_runs_that_are_older_than_prompts_have_none(tmp_path: Path) -> None:
    values = TrainingOptions().resolved().to_dict()
    for name in ("query_prompt", "document_prompt", "long_texts", "window_tokens"):
        del values["model"][name]
    saved = TrainingOptions.from_dict(values).model
    assert (saved.query_prompt, saved.document_prompt, saved.long_texts) == ("", "", "cut")
    now = read_as_saved(HeterformerOptions(backbone=e5(tmp_path / "e5")), saved)
    assert (now.query_prompt, now.document_prompt, now.readout) == ("", "", "mean")


def test_prompts_are_read_with_the_texts(tmp_path: Path) -> None:
    """By training, and by everything that opens the run: papers cite papers, so all are documents."""
    backbone = e5(tmp_path / "e5")
    plain = trained(tmp_path / "plain", backbone=backbone, max_steps=1, document_prompt="")
    run = trained(tmp_path / "run", backbone=backbone, max_steps=1)
    assert differ(run, plain)
    model, network = run.model(), tiny_network()
    assert model.prompts == {"paper": "passage: "}
    tokens, text = model.open_tokens(network), network.texts("paper", [3])[0]
    expected = model.tokenizer("passage: " + text)["input_ids"]
    assert tokens.gather(np.array([3]))[0].tolist() == expected
    assert plain.model().open_tokens(network).gather(np.array([3]))[0].tolist() != expected
    assert Run(run.path).options().model.document_prompt == "passage: "


def test_roles(tmp_path: Path) -> None:
    """Queries are nodes at which links of the predicted relation start and none end."""
    prompts = {"query_prompt": "q: ", "document_prompt": "d: "}
    backbone = save_backbone(tmp_path)
    assert new_model("bert", backbone, **prompts).prompts == {"paper": "d: ", "review": "d: "}
    asked = replace(schema(), predict="reviews")
    assert asked.predicted[0] == Relation("reviews", "review", "paper")
    model = MODELS["bert"].from_backbone(backbone, asked, **prompts)
    assert model.prompts == {"paper": "d: ", "review": "q: "}


def test_a_hub_that_does_not_answer_is_asked_for_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transformers.utils.hub.cached_file", None)  # would be called
    with pytest.raises(InputError, match=r"^some/typo: no such folder, nor can a model hub be reached: "):
        read_as_suits(HeterformerOptions(backbone="some/typo"), tiny_network(), no_pairs, "RUN")
