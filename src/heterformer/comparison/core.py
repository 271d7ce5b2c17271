"""Several models on one network: same split, same budget, one run folder per model and seed."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from heterformer.comparison.budget import say_budget
from heterformer.comparison.child_process import run_in_child
from heterformer.comparison.folder import CONFIG, check_free, is_comparison
from heterformer.comparison.job import LIMITS, Job
from heterformer.comparison.options import ComparisonOptions, check_seeds
from heterformer.comparison.results import Comparison, ComparisonSetup, gathered
from heterformer.comparison.tuning import check_tuning, trial_jobs, tune, tuned_in
from heterformer.comparison.variants import VARIANTS, Variant, check_common, chosen_variants
from heterformer.errors import InputError, OptionError
from heterformer.files import reading, write_text
from heterformer.models.options import EveryModelOptions, ModelOptions, every_model
from heterformer.network.labels import labelled_types
from heterformer.network.split.draw import make_split
from heterformer.network.store import Network
from heterformer.progress import say, waiting
from heterformer.training.keywords import training_options
from heterformer.training.options import TrainingOptions
from heterformer.training.reading import read_as_saved, read_as_suits
from heterformer.training.resuming import changed_options
from heterformer.untrusted import check_no_links_out

TUNING = ("tune", "tune_steps")  # what all models of a folder have in common besides their training
Runner = Callable[[Job], None]  # does a job, or notes why it failed
Observer = Callable[[Comparison], None]


def compare(
    network: Network | Path | str,
    out: Path | str,
    models: Iterable[str] = ("models",),
    seeds: Sequence[int] = (0,),
    options: TrainingOptions | None = None,
    observe: Observer | None = None,
    runner: Runner | None = None,
    evaluation: ComparisonOptions | None = None,
    **keywords: Any,
) -> Comparison:
    """Train several models alike on one network and rank the same test pairs with each.

    Each model and seed is a run in a process of its own, one after the other. Runs that the folder holds
    already are not repeated. A run that fails does not stop the others.

    Args:
        network: The network, or its folder.
        out: The folder of the comparison; runs are in ``out/runs/MODEL/seed-N``.
        models: Names of models, of ablations or of groups of them: "models", "baselines", "ablations",
            "dimensions", "all".
        seeds: Train each model once with each of these seeds.
        options: The training options that all models share.
        observe: Called with the comparison so far after each run.
        runner: Carries a job out; a child process unless given.
        evaluation: What is compared besides link prediction, and whether learning rates are tuned.
        keywords: Options as keywords, as ``train`` takes them, instead of ``options``.

    Returns:
        All runs of the folder, also those of earlier calls, which had the same options.

    Example:
        >>> comparison = compare("papers.net", "cmp", ["heterformer", "bert"], seeds=[0, 1], max_steps=300)
        >>> {row.variant.name: row.mean("prec") for row in comparison.rows}
    """
    network = network if isinstance(network, Network) else Network.open(network)
    out, options = Path(out), training_options(options, keywords)
    check_seeds(seeds)
    if isinstance(models, str):
        raise OptionError(None, "models", f"is {models!r}, expected a list of names, [{models!r}].")
    if not (models := tuple(models)):
        problem = "is empty, expected models, ablations or groups, such as 'models'."
        raise OptionError(None, "models", problem)
    check_common(options)
    options = replace(options, model=_resolved(network, out, options))  # variants resolve the rest
    evaluation, runner = evaluation or ComparisonOptions(), runner or run_in_child
    check_tuning(options, evaluation.tune)
    if evaluation.on_labels:
        labelled_types(network)  # an error if there are none
    variants = chosen_variants(models, options)
    _settle(network, out, options, evaluation)
    runs = [
        Job(out, network.path, variant, seed, options, evaluation) for variant in variants for seed in seeds
    ]
    say_budget(network, options, [job for job in runs if not job.is_done()], len(variants) * evaluation.tune)
    rates = _tuned_rates(network, out, variants, seeds[0], options, evaluation, runner)
    jobs = [replace(job, tuned=rates.get(job.variant.name)) for job in runs]
    to_do = [job for job in jobs if not job.is_done()]
    if done := len(jobs) - len(to_do):
        say(f"{done} of {len(jobs)} runs are finished already.")
    started = time.monotonic()
    for number, job in enumerate(to_do, 1):
        left = (time.monotonic() - started) * (len(to_do) + 1 - number) / max(number - 1, 1)
        soon = f" (about {left / 60:.0f} minutes left)" if left > 90 else ""
        say(f"[{number}/{len(to_do)}] {job.title}: {job.path}{soon}")
        job.failure.unlink(missing_ok=True)
        try:
            with waiting(f"[{number}/{len(to_do)}] {job.title}", spinner=False):  # the child shows bars
                runner(job)
        except KeyboardInterrupt:
            say(f"{out}: {number - 1} of {len(to_do)} runs finished; the same command resumes.")
            raise
        if job.failure.is_file():
            say(f"{job.title} failed: {job.failure.read_text(encoding='utf-8')}")
        if observe is not None:
            observe(_comparison(network, out, options, jobs, evaluation))
    return _comparison(network, out, options, jobs, evaluation)


def _resolved(network: Network, out: Path, options: TrainingOptions) -> ModelOptions:
    """The options of all models, read as suits their backbone: as the folder has it, if it has something."""
    model: ModelOptions = every_model(options.model)
    if is_comparison(out):
        model = read_as_saved(model, _config(out)["options"].model)
    else:
        model = read_as_suits(model, network, lambda: make_split(network, options.split).train, out)
    return model.resolved()


def _tuned_rates(
    network: Network,
    out: Path,
    variants: Sequence[Variant],
    seed: int,
    options: TrainingOptions,
    evaluation: ComparisonOptions,
    runner: Runner,
) -> dict[str, tuple[str, float]]:
    """The option and the rate that is best on validation, by variant; the trials have the first seed."""
    rates = {}
    for variant in variants if evaluation.tune else ():
        count, steps = evaluation.tune, evaluation.tune_steps
        tuned = tune(trial_jobs(out, network.path, variant, seed, options, count, steps), runner)
        if tuned is not None:
            rates[variant.name] = (tuned.option, tuned.best)
    return rates


def finished_comparison(out: Path, network: Path | None = None) -> Comparison:
    """What a comparison's folder holds by now; nothing is trained. The network may have moved."""
    config = _config(out)
    network_path = network or Path(config["network"])
    if network is None and not network_path.exists():
        remedy = f"'heterformer compare NEW_PLACE {out}' with table_only takes another place"
        raise InputError(f"{out}: its network is not at {network_path} any more; {remedy}.")
    opened = Network.open(network_path)
    _check_network(opened, out, config)
    return _comparison(opened, out, config["options"], [], config["evaluation"])


def _comparison(
    network: Network,
    out: Path,
    options: TrainingOptions,
    new_jobs: Sequence[Job],
    evaluation: ComparisonOptions,
) -> Comparison:
    """All runs of the folder, and new ones, in the order of the paper's tables."""
    stored = [Job(out, network.path, VARIANTS[name], seed, options) for name, seed in _runs_in(out)]
    order = {name: number for number, name in enumerate(VARIANTS)}
    jobs = sorted(
        {job.path: job for job in (*new_jobs, *stored)}.values(),
        key=lambda job: (order[job.variant.name], job.seed),
    )
    tuned = tuned_in(out, {job.variant.name: job.variant for job in jobs}.values())
    return gathered(network.name, jobs, ComparisonSetup(network.path, out, options, evaluation), tuned)


def _runs_in(out: Path) -> Iterable[tuple[str, int]]:
    for path in out.glob("runs/*/seed-*"):
        number = re.fullmatch(r"seed-(\d+)(\.failed\.txt)?", path.name)
        if number and path.parent.name in VARIANTS:
            yield path.parent.name, int(number[1])


def _settle(network: Network, out: Path, options: TrainingOptions, evaluation: ComparisonOptions) -> None:
    """Make the folder, or see that it is one of a comparison with the same options."""
    if is_comparison(out):
        _check(network, out, options, evaluation)
    else:
        check_free(out)
    values = {"network": str(network.path.resolve()), "fingerprint": network.fingerprint}
    chosen = {"options": options.to_dict(), "evaluation": evaluation.to_dict()}
    with _made(out):
        write_text(out / CONFIG, yaml.safe_dump(values | chosen, sort_keys=False))


@contextmanager
def _made(folder: Path) -> Iterator[None]:
    """Make a folder, which vanishes with those above it that were made for it if nothing comes into it."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        for path in missing:
            with suppress(OSError):
                path.rmdir()
        raise


def _check(network: Network, out: Path, options: TrainingOptions, evaluation: ComparisonOptions) -> None:
    config = _config(out)
    before: TrainingOptions = config["options"]
    _check_network(network, out, config)
    changed = changed_options(before, options)
    changed += [name for name in LIMITS if _limit(options, name) < _limit(before, name)]
    changed += [name for name in TUNING if getattr(config["evaluation"], name) != getattr(evaluation, name)]
    if changed:
        remedy = f"give the old values (they are in {out / CONFIG}; a budget may grow) or another folder"
        raise OptionError(None, changed, f"changed; {remedy}.", place=f"{out}: cannot resume with ")


def _check_network(network: Network, out: Path, config: dict[str, Any]) -> None:
    if network.fingerprint != config["fingerprint"]:
        raise InputError(f"{out}: {network.path} is not the network it compares on; choose another folder.")


def _limit(options: TrainingOptions, name: str) -> float:
    value = getattr(options, name)
    return float("inf") if value is None else float(value)


def _config(out: Path) -> dict[str, Any]:
    """What ``_settle`` wrote."""
    if not is_comparison(out):
        raise InputError(f"{out}: not a comparison, expected a folder that 'heterformer compare' wrote.")
    check_no_links_out(out)
    with reading(out / CONFIG):
        try:
            values = yaml.safe_load((out / CONFIG).read_text(encoding="utf-8"))
        except yaml.YAMLError as error:
            raise ValueError(error) from None
        options = TrainingOptions.from_dict(values["options"], EveryModelOptions)
        evaluation = ComparisonOptions()  # of a folder from before there was a choice
        if "evaluation" in values:
            evaluation = ComparisonOptions.from_dict(values["evaluation"])
        config = {"network": values["network"], "fingerprint": values["fingerprint"]}
        return config | {"options": options, "evaluation": evaluation}
