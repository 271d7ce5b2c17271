"""A student as others read it, what it has learnt, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from heterformer.batches.pairs import evaluation_sampler
from heterformer.distillation.entry import distill
from heterformer.distillation.options import DistillOptions
from heterformer.distillation.table import as_json, distillation_table
from heterformer.embedding.embed import embed
from heterformer.embedding.two_passes import model_digest
from heterformer.errors import InputError
from heterformer.evaluation.core import evaluate
from heterformer.evaluation.open_run import open_run
from heterformer.models.inference import center_vectors
from heterformer.models.student import Student
from heterformer.network.build.frames import temporary_folder
from heterformer.training.run import Run
from heterformer.training.train import train
from tests.distillation.students import QUICK, tiny_distillation
from tests.learning import tiny_network, tiny_options, tiny_reader
from tests.search.searching import tiny_run


def test_regression_draws_the_student_to_the_stored_vectors(tmp_path: Path) -> None:
    network, run = tiny_network(), Run(tiny_run())
    quick = QUICK | {"ranking_weight": 0.0, "learning_rate": 1e-3}
    student = Student.open(distill(run.path, tmp_path / "student", epochs=6, **quick).path)
    model = run.model()
    stored = embed(model, network, types=["paper"], hide_split=True)["paper"]
    texts = network.texts("paper")
    errors = [
        ((vectors - stored) ** 2).sum(1).mean() for vectors in (model.encode(texts), student.encode(texts))
    ]
    assert errors[1] < 0.8 * errors[0]


def test_the_models_figures_are_those_of_an_evaluation() -> None:
    (evaluated,) = [
        one
        for one in evaluate(tiny_run(), tasks=("link_prediction",), parts=("test",)).link_prediction
        if one.relation == "cites"
    ]
    assert tiny_distillation().test["model"] == {
        name: evaluated.metrics[f"alone_{name}"] for name in tiny_distillation().test["model"]
    }


def test_figures_are_those_of_the_readers_against_the_keys_of_an_evaluation() -> None:
    network, run, result = tiny_network(), Run(tiny_run()), tiny_distillation()
    pairs = run.split(network).test
    opened = open_run(run.path)
    sampler = evaluation_sampler(opened.seed)
    keys = center_vectors(opened.model, opened.batcher, "paper", pairs[:, 1], sampler).numpy()
    texts = network.texts("paper", pairs[:, 0])
    for name, reader in {"model": run.model(), "student": Student.open(result.path)}.items():
        scores = reader.encode(texts) @ keys.T
        own = np.diagonal(scores)[:, None]
        same = pairs[:, 1][:, None] == pairs[:, 1]
        best = ((scores >= own) & ~same).sum(1) == 0
        assert len(pairs) <= network.schema.test_batch_size  # so that there is one batch
        assert result.test[name]["prec"] == pytest.approx(best.mean(), abs=1e-6)
    assert result.pairs == len(pairs)
    assert result.test["student"].keys() == result.test["model"].keys()


def test_the_folder_says_what_it_is() -> None:
    result = tiny_distillation()
    about = json.loads((result.path / "heterformer.json").read_text())
    assert about["weights"] == model_digest(Run(tiny_run()).model())
    assert about["test"] == result.test
    pooling = json.loads((result.path / "1_Pooling" / "config.json").read_text())
    modes = {name.removeprefix("pooling_mode_"): value for name, value in pooling.items() if "mode" in name}
    assert modes.keys() == {"cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens"}
    assert sum(modes.values()) == 1
    card = (result.path / "README.md").read_text()
    assert "library_name: sentence-transformers" in card
    assert "vectors of paper nodes by their" in card
    assert "| batch_size | 16 |" in card
    assert f"{result.test['student']['prec']:.4f}".removeprefix("0") in card
    row = distillation_table(result).rows[0]
    assert row[:2] == ("student", f"{result.test['student']['prec']:.4f}".removeprefix("0"))
    assert as_json(result)["test"] == result.test


def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="exists already"):
        distill(tiny_run(), tmp_path)
    run = train(
        tiny_network(), tmp_path / "bags", tiny_options(tiny_reader(), model="mean_sage", max_steps=1)
    )
    with pytest.raises(InputError, match=r"MeanSAGE\) has no text encoder"):
        distill(run.path, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(InputError, match="not a student"):
        Student.open(tiny_run())


@pytest.mark.parametrize("wrong", [{"epochs": 0}, {"batch_size": 1}, {"learning_rate": 0.0}])
def test_options_out_of_range(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError, match=f"{next(iter(wrong))} is .*, expected"):
        DistillOptions(**wrong)


def test_equal_seeds_give_equal_students() -> None:
    first, second = (
        distill(tiny_run(), temporary_folder() / "s", max_steps=2, seed=3, **QUICK).path for _ in range(2)
    )
    assert (first / "model.safetensors").read_bytes() == (second / "model.safetensors").read_bytes()
