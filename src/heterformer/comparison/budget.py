"""What a comparison will take, said before its first run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from heterformer.comparison.job import Job
from heterformer.errors import InputError
from heterformer.network.split.draw import make_split
from heterformer.network.store import Network
from heterformer.progress import say
from heterformer.training.options import TrainingOptions

Speed = Callable[[Network, TrainingOptions], float]  # pairs that training takes in a second


def say_budget(
    network: Network, options: TrainingOptions, jobs: Sequence[Job], trials: int, speed: Speed | None = None
) -> None:
    """How many runs of how many steps are to come; without a budget, also how long they may take."""
    if not jobs:
        return
    pairs = len(make_split(network, options.split).train)
    epoch = max(1, pairs // options.batch_size + (pairs % options.batch_size > 1))
    counted = f"{len(jobs)} run{'s' * (len(jobs) != 1)}" + (f" and up to {trials} trials" if trials else "")
    if options.max_steps is None and options.max_minutes is None:
        most = f"until early stopping, at most {options.epochs} epochs of {epoch:,} steps"
        each = ", one after the other, each" if len(jobs) > 1 or trials else ""
        say(f"{counted}{each} {most}; fewer steps, minutes or epochs set a budget.")
        _say_time(network, jobs, len(jobs) * options.epochs * pairs, speed or _measured_speed)
    elif options.max_steps is not None and options.max_steps < epoch:
        say(f"{counted} of {options.max_steps:,} steps each, less than an epoch ({epoch:,} steps).")


def _say_time(network: Network, jobs: Sequence[Job], pairs: int, speed: Speed) -> None:
    """An estimate for all runs, as if each were as fast as Heterformer or, without it, the first."""
    timed = next((job for job in jobs if job.variant.name == "heterformer"), jobs[0])
    try:
        seconds = pairs / speed(network, timed.options())
    except (InputError, OSError, RuntimeError):
        return  # the run will fail for the same reason, and says so
    steps = f"a few timed steps of {timed.variant.display_name}"
    say(f"Estimate by {steps}: at most {_duration(seconds)} in all, validation and warm-up not counted.")


def _measured_speed(network: Network, options: TrainingOptions) -> float:
    import torch

    from heterformer.plan.throughput import measured_training_speed

    try:
        return measured_training_speed(network, options)
    finally:
        if torch.cuda.is_available():
            torch.cuda.empty_cache()  # the runs, in processes of their own, need it


def _duration(seconds: float) -> str:
    minutes = max(1, round(seconds / 60))
    if minutes < 120:
        return f"about {minutes} minute{'s' * (minutes != 1)}"
    return f"about {round(minutes / 60):,} hours"
