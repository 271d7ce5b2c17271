"""The learning rate of each model's new parameters: the same number of trials for all, by validation PREC."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from heterformer.comparison.job import Job, Trial
from heterformer.comparison.variants import Variant
from heterformer.errors import OptionError
from heterformer.files import reading
from heterformer.progress import say
from heterformer.training.options import TrainingOptions

FOLDER = "tuning"
FACTORS = (1, 1 / 3, 3, 1 / 10, 10, 1 / 30, 30)  # of the model's usual rate, in the order they are tried


@dataclass(frozen=True)
class TunedRate:
    """The rates that were tried for a variant, and which is best on validation."""

    option: str
    """The option that was tuned: models without new parameters have their backbone's rate tuned instead."""
    trials: tuple[Trial, ...]

    @property
    def best(self) -> float:
        """Among equals, the one closest to the usual rate."""
        return max(self.trials, key=lambda trial: trial.validation_prec).rate


def tuned_option(variant: Variant) -> str:
    """Text alone has no parameters besides the backbone's."""
    return "learning_rate" if variant.model.family == "text-only" else "new_learning_rate"


def trial_jobs(
    out: Path, network: Path, variant: Variant, seed: int, common: TrainingOptions, count: int, steps: int
) -> list[Job]:
    """A short training for each rate; the usual one first."""
    option = tuned_option(variant)
    usual = getattr(variant.options(common, seed).resolved(), option)
    jobs = []
    for number, factor in enumerate(FACTORS[:count]):
        rate = float(f"{usual * factor:.3g}")
        options = replace(common, max_steps=steps, max_minutes=None, evaluate_every=None)
        folder = out / FOLDER / f"{option}-{rate:.3g}"
        jobs.append(Job(folder, network, variant, seed, options, tuned=(option, rate), trial=number))
    return jobs


def tune(jobs: Sequence[Job], runner: Callable[[Job], None]) -> TunedRate | None:
    """Carry out the trials that are not done yet. Nothing if all failed: the usual rate stays."""
    for job in jobs:
        if not job.is_done():
            assert job.tuned is not None
            say(f"tuning {job.title}: {job.tuned[0].replace('_', ' ')} {job.tuned[1]:g}")
            job.failure.unlink(missing_ok=True)
            runner(job)
    trials = [trial for job in jobs if (trial := _read(job.trial_file)) is not None]
    return TunedRate(tuned_option(jobs[0].variant), tuple(trials)) if trials else None


def tuned_in(out: Path, variants: Iterable[Variant]) -> dict[str, TunedRate]:
    """What a comparison's folder holds of earlier trials, by variant."""
    tuned: dict[str, TunedRate] = {}
    for variant in variants:
        option = tuned_option(variant)
        files = sorted(out.glob(f"{FOLDER}/{option}-*/runs/{variant.name}/*.trial.json"))
        trials = [trial for file in files if (trial := _read(file)) is not None]
        if trials:
            tuned[variant.name] = TunedRate(option, tuple(sorted(trials, key=lambda trial: trial.number)))
    return tuned


def check_tuning(common: TrainingOptions, count: int) -> None:
    """A rate that is given is not tuned."""
    if count and common.new_learning_rate != "auto":
        problem = f"is {common.new_learning_rate:g}, expected nothing: {{tune}} chooses it."
        raise OptionError(None, "new_learning_rate", problem)


def _read(path: Path) -> Trial | None:
    if not path.is_file():
        return None
    with reading(path):
        return Trial(**json.loads(path.read_text(encoding="utf-8")))
