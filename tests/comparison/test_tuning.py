"""Learning rates: as many trials for each model, the best on validation is taken."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from heterformer.cli.command_lines import compare_command
from heterformer.comparison.core import compare
from heterformer.comparison.job import Job, Trial, carry_out
from heterformer.comparison.options import ComparisonOptions
from heterformer.comparison.results import Comparison
from heterformer.comparison.table import as_json, as_markdown
from heterformer.comparison.tuning import FACTORS, trial_jobs
from heterformer.comparison.variants import VARIANTS
from heterformer.errors import InputError
from heterformer.models.options import every_model
from heterformer.training.run import Run
from tests.comparison.comparing import COMMAND, pretended
from tests.learning import tiny_network, tiny_options, tiny_reader

SKILL = {"bert": 0.5, "heterformer": 0.6}


class Runner:
    """Trials are best at a third of the usual rate."""

    def __init__(self) -> None:
        self.trials: list[Job] = []
        self.runs: list[Job] = []

    def __call__(self, job: Job) -> None:
        if job.trial is None:
            self.runs.append(job)
            pretended(SKILL)(job)
            return
        self.trials.append(job)
        assert job.tuned is not None
        assert job.common.max_steps is not None
        prec = 0.9 if job.trial == 1 else 0.1
        job.path.parent.mkdir(parents=True, exist_ok=True)
        trial = Trial(job.trial, job.tuned[1], prec, job.common.max_steps)
        job.trial_file.write_text(json.dumps(asdict(trial)))


def compared(out: Path, runner: Runner, **more: int) -> Comparison:
    options = replace(tiny_options(tiny_reader(), max_steps=300), new_learning_rate="auto")
    evaluation = ComparisonOptions(tune=3, **{"tune_steps": 7, **more})
    return compare(tiny_network(), out, tuple(SKILL), (0, 1), options, runner=runner, evaluation=evaluation)


def test_each_model_has_as_many_trials_and_its_runs_have_the_best_rate(tmp_path: Path) -> None:
    runner = Runner()
    found = compared(tmp_path / "out", runner)
    usual = {"heterformer": VARIANTS["heterformer"].model.new_learning_rate, "bert": 1e-3}
    for name, option in (("heterformer", "new_learning_rate"), ("bert", "learning_rate")):
        trials = [job for job in runner.trials if job.variant.name == name]
        rates = [getattr(job.options(), option) for job in trials]
        assert rates == pytest.approx([usual[name] * factor for factor in FACTORS[:3]], rel=1e-2)
        assert {(job.options().max_steps, job.seed) for job in trials} == {(7, 0)}
        runs = [job.options() for job in runner.runs if job.variant.name == name]
        assert [getattr(options, option) for options in runs] == [rates[1]] * 2
        assert {options.max_steps for options in runs} == {300}
        assert found.tuned[name].best == rates[1]
        values = as_json(found, COMMAND)["tuning"][name]
        assert (values["option"], values["chosen"]) == (option, rates[1])
        assert [trial["validation_prec"] for trial in values["trials"]] == [0.1, 0.9, 0.1]
    told = "Learning rates of new parameters, chosen by validation PREC after 7 steps: BERT 0.000333 of"
    assert told in as_markdown(found, COMMAND)
    assert "--tune 3 --tune-steps 7" in compare_command(found)


def test_trials_that_are_done_are_not_repeated(tmp_path: Path) -> None:
    runner = Runner()
    first = compared(tmp_path / "out", runner)
    (runner.trials[0].trial_file).unlink()
    again = Runner()
    assert compared(tmp_path / "out", again) == first
    assert [job.trial for job in again.trials] == [0]
    assert not again.runs
    with pytest.raises(InputError, match="cannot resume with tune_steps changed"):
        compared(tmp_path / "out", again, tune_steps=9)


def test_a_trial_keeps_its_figure_alone(tmp_path: Path) -> None:
    common = tiny_options(tiny_reader()).resolved()
    common = replace(common, model=every_model(common.model))
    chosen = (tmp_path, tiny_network().path, VARIANTS["bert"], 0, common)
    job = trial_jobs(*chosen, count=2, steps=2)[1]
    carry_out(job)
    assert job.is_done()
    trial = Trial(**json.loads(job.trial_file.read_text()))
    assert (trial.number, trial.rate, trial.steps) == (1, 0.000333, 2)
    assert 0 <= trial.validation_prec <= 1
    assert not Run(job.path).exists
    assert not trial_jobs(*chosen, count=2, steps=3)[1].is_done()
    assert Job.from_json(job.to_json()) == job


def test_a_rate_that_is_given_is_not_tuned(tmp_path: Path) -> None:
    options = tiny_options(tiny_reader())
    with pytest.raises(InputError, match=r"new_learning_rate is 0\.001, expected nothing: tune chooses it"):
        compare(
            tiny_network(), tmp_path / "out", ["bert"], options=options, evaluation=ComparisonOptions(tune=2)
        )
    assert not (tmp_path / "out").exists()
    with pytest.raises(InputError, match="tune is 1, expected 2 to 7 rates, or 0 for none"):
        ComparisonOptions(tune=1)
