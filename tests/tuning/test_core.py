"""A search: its trials, their pruning, and how it goes on after an interruption."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import yaml

from heterformer.cli.main import main
from heterformer.errors import InputError
from heterformer.training.callbacks import TrainingProgress
from heterformer.training.options import TrainingOptions
from heterformer.training.run import Run
from heterformer.tuning.core import tune
from heterformer.tuning.options import TuneOptions
from heterformer.tuning.table import as_json, tuning_table
from tests.learning import tiny_network, tiny_reader

BEST_RATE = 1e-4
OPTIONS = TuneOptions(trials=12, ranges=("learning_rate=1e-6:1e-2:log",))


class Trainer:
    """Stands in for a training: the closer the rate to the best one, the better each validation."""

    def __init__(self, stop_in: int | None = None) -> None:
        self.calls: list[tuple[Path, float]] = []
        self.stop_in = stop_in

    def __call__(self, network: Any, path: Path, options: TrainingOptions, callback: Any) -> Any:
        self.calls.append((path, options.learning_rate))
        if self.stop_in == len(self.calls):
            raise KeyboardInterrupt
        prec = 1 / (1 + abs(math.log10(options.learning_rate / BEST_RATE)))
        for step in range(1, 5):
            validation = {"prec": prec * step / 4}
            if callback(TrainingProgress(step, 0, 1.0, 1.0, validation)):
                break


def search(path: Path, trainer: Trainer, options: TuneOptions = OPTIONS) -> Any:
    return tune(tiny_network(), path, TrainingOptions(), options, trainer=trainer)


def test_the_best_trial_is_found_and_bad_ones_are_stopped(tmp_path: Path) -> None:
    trainer = Trainer()
    result = search(tmp_path / "out", trainer)
    assert len(trainer.calls) == len(result.trials) == 12
    states = {trial.state for trial in result.trials}
    assert states == {"complete", "pruned"}
    stopped = next(trial for trial in result.trials if trial.state == "pruned")
    assert stopped.steps < 4
    rates = {
        trial.number: trial.values["learning_rate"] for trial in result.trials if trial.state == "complete"
    }
    closest = min(rates, key=lambda number: abs(math.log10(rates[number] / BEST_RATE)))
    assert result.best.number == closest
    saved = yaml.safe_load(result.config.read_text())
    assert saved["learning_rate"] == result.best.values["learning_rate"]
    table = tuning_table(result)
    assert table.rows[0][:2] == (str(closest), "complete")
    assert as_json(result)["best"]["values"] == result.best.values


def test_a_stopped_search_goes_on_and_repeats_the_trial_in_its_folder(tmp_path: Path) -> None:
    whole = Trainer()
    expected = search(tmp_path / "whole", whole)
    first = Trainer(stop_in=5)
    with pytest.raises(KeyboardInterrupt):
        search(tmp_path / "out", first)
    second = Trainer()
    result = search(tmp_path / "out", second)
    assert second.calls[0] == first.calls[-1]  # the same options in the same folder
    assert len(first.calls) + len(second.calls) == 13
    assert sum(trial.state != "failed" for trial in result.trials) == 12
    assert [t.values for t in result.trials][:5] == [t.values for t in expected.trials][:5]
    again = Trainer()
    search(tmp_path / "out", again)
    assert again.calls == []  # nothing is left to do
    more = Trainer()
    search(tmp_path / "out", more, TuneOptions(trials=13, ranges=OPTIONS.ranges))
    assert len(more.calls) == 1


def test_a_search_is_of_one_network_and_one_set_of_options(tmp_path: Path) -> None:
    search(tmp_path / "out", Trainer(), TuneOptions(trials=1, ranges=OPTIONS.ranges))
    with pytest.raises(InputError, match="its trials have another ranges"):
        search(tmp_path / "out", Trainer(), TuneOptions(trials=2))
    with pytest.raises(InputError, match="its trials have another options"):
        tune(tiny_network(), tmp_path / "out", TrainingOptions(batch_size=7), OPTIONS, trainer=Trainer())
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    with pytest.raises(InputError, match="is not a search of 'heterformer tune'"):
        search(tmp_path / "other", Trainer())


def test_options_that_always_fail_end_the_search(tmp_path: Path) -> None:
    def failing(*arguments: Any, **more: Any) -> None:
        raise InputError("no such backbone.")

    with pytest.raises(InputError, match=r"the first 3 trials failed; the last because: no such backbone\."):
        tune(tiny_network(), tmp_path / "out", TrainingOptions(), OPTIONS, trainer=failing)


def test_the_command_trains_and_resumes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    size = ["--max-steps", "2", "--batch-size", "8", "--backbone", tiny_reader(), "--device", "cpu"]
    ranges = ["--ranges", "learning-rate=1e-4:1e-2:log", "textless-dim=4,8", "--no-warm-up"]
    for trials in ("1", "2"):
        main(["tune", str(tiny_network().path), str(out), "--trials", trials, *size, *ranges])
    shown = capsys.readouterr().out
    assert "textless dim" in shown
    assert f"--config {out / 'best.yaml'}" in shown
    runs = sorted((out / "trials").iterdir())
    assert [run.name for run in runs] == ["0000", "0001"]
    assert all(Run(run).is_complete for run in runs)
    main(["train", str(tiny_network().path), str(tmp_path / "run"), "--config", str(out / "best.yaml")])
    best = yaml.safe_load((out / "best.yaml").read_text())
    assert Run(tmp_path / "run").options().learning_rate == best["learning_rate"]
