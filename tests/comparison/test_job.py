from __future__ import annotations

import errno
import fcntl
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from heterformer.comparison.job import (
    COST,
    RANKS,
    RESULT,
    Job,
    RunResult,
    carry_out,
    job_lock,
    one_sentence,
    query_ranks,
    rank_test_pairs,
)
from heterformer.comparison.variants import VARIANTS
from heterformer.errors import InputError
from heterformer.evaluation.core import evaluate
from heterformer.evaluation.open_run import open_run
from heterformer.metrics import RANKING_METRICS
from heterformer.models.options import every_model
from heterformer.training.run import Run
from tests.evaluation.held_out_pairs import link_prediction_of
from tests.learning import tiny_network, tiny_options, tiny_reader


def job(out: Path, variant: str = "heterformer", seed: int = 0, max_steps: int = 3, **more: object) -> Job:
    common = tiny_options(tiny_reader(), max_steps=max_steps, **more).resolved()
    common = replace(common, model=every_model(common.model))  # as a comparison has it
    return Job(out, tiny_network().path, VARIANTS[variant], seed, common)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Job:
    found = job(tmp_path_factory.mktemp("out"), seed=4)
    carry_out(found)
    return found


def test_a_job_survives_its_way_to_another_process(tmp_path: Path) -> None:
    sent = job(tmp_path, "no_hp", 7, evaluate_every=2)
    assert Job.from_json(sent.to_json()) == sent


def test_the_figures_are_those_of_evaluate(done: Job) -> None:
    (expected,) = link_prediction_of(open_run(done.path), ("test",))
    result = RunResult.open(done.path)
    assert result.figures == expected.metrics
    assert set(result.figures) > {metric.name for metric in RANKING_METRICS}
    assert (result.chance, result.popularity) == (expected.chance, expected.popularity)
    assert result.figures["ndcg"] == expected.metrics["ndcg"]
    assert result.figures["full_mrr"] == expected.metrics["full_mrr"]
    assert result.figures["hits_10"] == expected.metrics["hits_10"]
    assert (result.pairs, result.batch_size) == (expected.pairs, expected.batch_size)
    assert (result.full_queries, result.candidates) == (expected.full_queries, expected.candidates)


def test_the_ranks_are_what_the_figures_are_means_of(done: Job) -> None:
    ranks, figures = query_ranks(done.path), RunResult.open(done.path).figures
    assert (ranks["in_batch"] == 1).mean() == pytest.approx(figures["prec"])
    assert (1 / ranks["full"]).mean() == pytest.approx(figures["full_mrr"])
    assert (ranks["alone_in_batch"] == 1).mean() == pytest.approx(figures["alone_prec"])
    assert (1 / ranks["alone_full"]).mean() == pytest.approx(figures["alone_full_mrr"])
    assert len(ranks["full"]) == len(open_run(done.path).split.test)


def test_a_metric_that_an_older_result_lacks_follows_from_its_ranks(done: Job, tmp_path: Path) -> None:
    values, expected = json.loads((done.path / RESULT).read_text()), RunResult.open(done.path)
    del values["figures"]["hits_10"]
    (tmp_path / RESULT).write_text(json.dumps(values))
    (tmp_path / RANKS).write_bytes((done.path / RANKS).read_bytes())
    assert RunResult.open(tmp_path) == expected


def test_the_cost_is_noted(done: Job) -> None:
    result = RunResult.open(done.path)
    model = Run(done.path).model()
    assert result.parameters == sum(p.numel() for p in model.parameters())
    schema = tiny_network().schema
    assert result.textless_parameters == 8 * sum(schema.counts[t] for t in schema.textless)
    assert result.steps == 3
    assert 0 < 3 * result.seconds_per_step <= result.cost.seconds + 0.1
    assert 50 < result.cost.memory < 100_000
    position, early = Run(done.path).progress()
    assert (result.validation_prec, result.best_step, position.step) == (early.best, early.best_step, 3)


def test_a_job_is_finished_when_its_budget_is_used_up(done: Job) -> None:
    assert done.is_ranked()
    assert not job(done.out, seed=4, max_steps=5).is_ranked()
    assert not job(done.out, seed=5).is_ranked()


def test_a_finished_training_whose_ranking_was_interrupted_is_only_ranked(tmp_path: Path) -> None:
    found = job(tmp_path, "bert")
    carry_out(found)
    before, metrics = RunResult.open(found.path), (found.path / "metrics.jsonl").stat().st_mtime_ns
    weights = (found.path / "model.safetensors").stat().st_mtime_ns
    (found.path / RESULT).unlink()
    assert not found.is_ranked()
    carry_out(found)
    assert RunResult.open(found.path).figures == before.figures
    assert (found.path / "model.safetensors").stat().st_mtime_ns == weights
    assert metrics <= (found.path / "metrics.jsonl").stat().st_mtime_ns


def test_a_run_that_an_earlier_version_ranked_is_ranked_anew(done: Job, tmp_path: Path) -> None:
    path = shutil.copytree(done.path, tmp_path / "runs" / "heterformer" / "seed-4")
    found, expected = replace(done, out=tmp_path), RunResult.open(path)
    values = json.loads((path / RESULT).read_text())
    del values["rules"]
    (path / RESULT).write_text(json.dumps(values))
    assert found.is_ranked()
    assert not found.is_done()
    carry_out(found)
    assert found.is_done()
    assert RunResult.open(path).figures == expected.figures


def test_the_test_pairs_are_ranked_in_the_precision_of_the_run(tmp_path: Path) -> None:
    found = job(tmp_path, "bert")
    carry_out(found)
    exact, config = RunResult.open(found.path), found.path / "config.yaml"
    config.write_text(config.read_text().replace("precision: float32", "precision: bf16"))
    rank_test_pairs(found.path)
    assert RunResult.open(found.path).figures != exact.figures
    rounded = evaluate(found.path, tasks=("link_prediction",), parts=("test",), precision="bf16")
    assert RunResult.open(found.path).figures == rounded.link_prediction[0].metrics


def test_a_larger_budget_goes_on_and_is_ranked_anew(tmp_path: Path) -> None:
    carry_out(job(tmp_path, "bert"))
    seconds = json.loads((tmp_path / "runs/bert/seed-0" / COST).read_text())["seconds"]
    longer = job(tmp_path, "bert", max_steps=6)
    carry_out(longer)
    result = RunResult.open(longer.path)
    assert longer.is_ranked()
    assert result.steps == 6
    assert result.cost.seconds > seconds  # the time of both
    losses = [line["step"] for line in Run(longer.path).metrics() if "loss" in line]
    assert losses == [1, 2, 3, 4, 5, 6]


def test_a_training_that_failed_leaves_no_old_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = job(tmp_path, "bert")
    carry_out(found)

    def broken(*_: object) -> None:
        raise InputError("broken")

    monkeypatch.setattr("heterformer.training.train.train", broken)
    with pytest.raises(InputError, match="broken"):
        carry_out(job(tmp_path, "bert", max_steps=5))  # a larger budget: training goes on
    assert not (found.path / RESULT).exists()


def test_the_test_pairs_are_the_same_for_every_variant_and_seed(done: Job, tmp_path: Path) -> None:
    other = job(tmp_path, "bert", seed=1)
    carry_out(other)
    pairs = [open_run(path).split.test for path in (done.path, other.path)]
    assert np.array_equal(pairs[0], pairs[1])


def test_no_two_processes_work_on_one_run(tmp_path: Path) -> None:
    found = job(tmp_path, "bert")
    with job_lock(found):
        (lock,) = found.path.parent.iterdir()
        with lock.open("w") as other, pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert list(found.path.parent.iterdir()) == []


def test_a_failure_is_one_sentence() -> None:
    assert one_sentence(InputError("no such thing.")) == "no such thing."
    assert one_sentence(RuntimeError("out of memory\nTraceback")) == "RuntimeError: out of memory"
    assert one_sentence(MemoryError()) == "MemoryError"
    full = OSError(errno.ENOSPC, "No space left on device", "run/checkpoints")
    assert one_sentence(full) == "run/checkpoints: No space left on device"
