"""Search for training options: trials of Optuna, each a run, kept in a database so that it can be resumed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from heterformer.errors import InputError
from heterformer.files import file_lock, write_text
from heterformer.network.store import Network
from heterformer.progress import say
from heterformer.training.callbacks import TrainingProgress
from heterformer.training.flat_options import flat_options
from heterformer.training.options import TrainingOptions
from heterformer.training.train import train
from heterformer.tuning.options import TuneOptions
from heterformer.tuning.ranges import Range, read_ranges

STUDY, DATABASE, BEST = "tune", "study.db", "best.yaml"
FOLDER = "folder"  # of a trial's run, among its attributes
STARTUP_TRIALS = 3  # before any is stopped
FAILURES = 3  # at the beginning, after which the search is given up


@dataclass(frozen=True)
class TriedOptions:
    """One trial."""

    number: int
    values: dict[str, Any]
    """The chosen options."""
    validation_prec: float | None
    """The best validation PREC; none if it failed."""
    steps: int
    """Steps taken."""
    state: str
    """complete, pruned, failed or running."""


@dataclass(frozen=True)
class Tuning:
    """All trials of a search, and the best one."""

    path: Path
    trials: tuple[TriedOptions, ...]

    @property
    def best(self) -> TriedOptions:
        """The complete trial with the highest validation PREC; the first among equals."""
        complete = [trial for trial in self.trials if trial.state == "complete"]
        if not complete:
            raise InputError(f"{self.path}: no trial is complete; the same command resumes.")
        return max(complete, key=lambda trial: (trial.validation_prec or 0.0, -trial.number))

    @property
    def config(self) -> Path:
        """A file with the best options, which ``train`` takes as its configuration."""
        return self.path / BEST


def tune(
    network: Network,
    path: Path,
    training: TrainingOptions,
    options: TuneOptions | None = None,
    *,
    trainer: Callable[..., Any] = train,
) -> Tuning:
    """Try options until there are as many trials as asked for; a stopped search is resumed."""
    optuna = _optuna()
    options = options or TuneOptions()
    ranges = read_ranges(options.ranges, training)
    if path.exists() and any(path.iterdir()) and not (path / DATABASE).is_file():
        raise InputError(f"{path}: exists and is not a search of 'heterformer tune'; choose another name.")
    busy = f"{path}: another process is searching there; wait until it is done or name another folder."
    with file_lock(path / DATABASE, busy=busy):
        path.mkdir(parents=True, exist_ok=True)
        study = optuna.create_study(
            study_name=STUDY,
            storage=f"sqlite:///{(path / DATABASE).resolve()}",
            direction="maximize",
            load_if_exists=True,
            pruner=_pruner(options),
        )
        search = _Search(study, network, path, training, ranges, trainer)
        search.check_same()
        search.restart_interrupted()
        while len(search.ended_trials()) < options.trials:
            # A seed of its own for each trial: a resumed search draws what it would have drawn.
            study.sampler = optuna.samplers.TPESampler(seed=options.tune_seed + len(study.trials))
            search.next_trial()
        result = Tuning(path, tuple(_tried(trial) for trial in study.trials))
        write_text(
            result.config, yaml.safe_dump(search.options(result.best.values).to_dict(), sort_keys=False)
        )
    return result


def _optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise InputError(
            "tuning needs Optuna, which is not installed: pip install 'heterformer[tune]'."
        ) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def _pruner(options: TuneOptions) -> Any:
    pruners = _optuna().pruners
    return pruners.MedianPruner(n_startup_trials=STARTUP_TRIALS) if options.prune else pruners.NopPruner()


@dataclass
class _Search:
    """One study and what its trials train."""

    study: Any
    network: Network
    path: Path
    training: TrainingOptions
    ranges: list[Range]
    trainer: Callable[..., Any]

    def check_same(self) -> None:
        """A study is of one network, one set of fixed options and one of ranges."""
        fixed = {name: str(value) for name, value in flat_options(self.training).items()}
        own = {"network": self.network.fingerprint, "options": fixed, "ranges": [str(r) for r in self.ranges]}
        known = self.study.user_attrs.get("search")
        if known is None:
            self.study.set_user_attr("search", own)
        elif known != own:
            changed = ", ".join(name for name in own if known.get(name) != own[name])
            problem = f"its trials have another {changed}"
            raise InputError(f"{self.path}: {problem}; give the same as before, or name another folder.")

    def ended_trials(self) -> list[Any]:
        """The trials that ended, whatever came of them; those to be repeated are not among them."""
        return [t for t in self.study.trials if t.state.is_finished() and not t.user_attrs.get("repeated")]

    def restart_interrupted(self) -> None:
        """What a stopped search left running is trained to its end first, in the same folder."""
        states = _optuna().trial.TrialState
        for trial in self.study.get_trials(states=(states.RUNNING,)):
            folder = trial.user_attrs.get(FOLDER, _folder(trial.number))
            self.study._storage.set_trial_user_attr(trial._trial_id, "repeated", True)
            self.study.tell(trial.number, state=states.FAIL)
            self.study.enqueue_trial(trial.params, user_attrs={FOLDER: folder})

    def next_trial(self) -> None:
        states = _optuna().trial.TrialState
        trial = self.study.ask()
        folder = trial.user_attrs.get(FOLDER, _folder(trial.number))
        trial.set_user_attr(FOLDER, folder)
        values = {one.name: one.choose(trial) for one in self.ranges}
        say(f"trial {trial.number}: " + ", ".join(f"{n} {_short(v)}" for n, v in values.items()))
        watch = _Watch(trial)
        try:
            run = self.trainer(
                self.network, self.path / "trials" / folder, self.options(values), callback=watch
            )
        except InputError as error:
            trial.set_user_attr("failure", str(error))
            self.study.tell(trial, state=states.FAIL)
            say(f"trial {trial.number}: failed: {error}")
            self._give_up(error)
            return
        if watch.best is None:  # it was complete before the search was stopped
            watch.read(run.metrics())
        trial.set_user_attr("steps", watch.step)
        if watch.pruned:
            self.study.tell(trial, state=states.PRUNED)
        else:
            self.study.tell(trial, watch.best)

    def _give_up(self, error: InputError) -> None:
        """Options that fail from the beginning would fail forever."""
        ended = self.ended_trials()
        if len(ended) >= FAILURES and all(t.state.name == "FAIL" for t in ended):
            raise InputError(f"{self.path}: the first {len(ended)} trials failed; the last because: {error}")

    def options(self, values: dict[str, Any]) -> TrainingOptions:
        """The options of a trial."""
        flat = flat_options(self.training) | values
        return TrainingOptions.from_flat(flat)


class _Watch:
    """The callback of a trial's training: reports each validation, and stops if Optuna says so."""

    def __init__(self, trial: Any) -> None:
        self.trial, self.step, self.pruned = trial, 0, False
        self.best: float | None = None

    def __call__(self, now: TrainingProgress) -> bool:
        self.step = now.step
        if now.validation is None:
            return False
        prec = now.validation["prec"]
        self.best = prec if self.best is None else max(self.best, prec)
        self.trial.report(prec, now.step)
        self.pruned = bool(self.trial.should_prune())
        return self.pruned

    def read(self, metrics: list[dict[str, Any]]) -> None:
        """Take over what was validated before."""
        validated = [line for line in metrics if "validation" in line]
        self.best = max(line["validation"]["prec"] for line in validated)
        self.step = metrics[-1]["step"]


def _folder(number: int) -> str:
    return f"{number:04}"


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _tried(trial: Any) -> TriedOptions:
    states = {"COMPLETE": "complete", "PRUNED": "pruned", "FAIL": "failed", "RUNNING": "running"}
    reported = list(trial.intermediate_values.values())
    best = trial.value if trial.value is not None else max(reported, default=None)
    state = states.get(trial.state.name, trial.state.name.lower())
    return TriedOptions(trial.number, dict(trial.params), best, int(trial.user_attrs.get("steps", 0)), state)
