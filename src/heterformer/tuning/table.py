"""The trials of a search as a table, as JSON, and as a page."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from heterformer.metrics import metric_heading
from heterformer.tables import Sheet, four_digits
from heterformer.tuning.core import Tuning

MAX_TRIALS = 15  # trials in the table, the best ones


def tuning_table(tuning: Tuning) -> Sheet:
    """The best trials, best first."""
    names = list(dict.fromkeys(name for trial in tuning.trials for name in trial.values))
    ranked = sorted(tuning.trials, key=lambda trial: -(trial.validation_prec or 0.0))
    rows = tuple(
        (
            str(trial.number),
            trial.state,
            *(_cell(trial.values.get(name)) for name in names),
            f"{trial.steps:,}",
            "" if trial.validation_prec is None else four_digits(trial.validation_prec),
        )
        for trial in ranked[:MAX_TRIALS]
    )
    heading = metric_heading("prec")
    headings = ("trial", "state", *(name.replace("_", " ") for name in names), "steps", heading)
    note = f"{len(tuning.trials)} trials; {heading} of the validation pairs; best: trial {tuning.best.number}"
    return Sheet("Trials", headings, rows, note, text_columns=2)


def as_json(tuning: Tuning) -> dict[str, Any]:
    """For other programs."""
    return {"best": asdict(tuning.best), "trials": [asdict(trial) for trial in tuning.trials]}


def _cell(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else "" if value is None else str(value)
