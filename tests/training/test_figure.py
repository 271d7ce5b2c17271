from __future__ import annotations

from pathlib import Path

import pytest

from heterformer.errors import InputError
from heterformer.training.figure import draw_run
from heterformer.training.run import Run
from tests.learning import tiny_network, tiny_options, tiny_reader
from tests.pictures import check_picture, drawings


@pytest.fixture
def run(tmp_path: Path) -> Run:
    found = Run(tmp_path / "run")
    found.start(tiny_network(), tiny_options(tiny_reader()))
    return found


def test_loss_and_validation(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = drawings(monkeypatch)
    for step in range(1, 101):
        run.log(step=step, loss=3.0 / step)
        if step % 25 == 0:
            run.log(step=step, validation={"prec": step / 200, "mrr": step / 150, "ndcg": step / 120})
    (path,) = draw_run(run, tmp_path / "figures")
    assert path == tmp_path / "figures" / "training.png"
    check_picture(path)
    assert written[0].axes[0].get_title() == "training loss, and its mean"
    loss, smoothed = written[0].axes[0].lines
    assert list(loss.get_ydata()) == [3.0 / step for step in range(1, 101)]
    assert list(smoothed.get_xdata()) == [3 + 5 * part for part in range(20)]  # of five steps each
    assert list(smoothed.get_ydata())[-1] == pytest.approx(sum(3.0 / step for step in range(96, 101)) / 5)


def test_validation_begins_at_step_0_and_the_best_step_is_marked(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.log(step=0, before_training={"prec": 0.9, "mrr": 0.9})  # never the best: no such model is kept
    for step, prec in ((10, 0.2), (20, 0.6), (30, 0.4)):
        run.log(step=step, loss=1.0)
        run.log(step=step, validation={"prec": prec, "mrr": 0.5})
    written = drawings(monkeypatch)
    draw_run(run, tmp_path / "figures")
    right = written[0].axes[1]
    *_, watched, best = right.lines
    assert list(watched.get_xdata()) == [0, 10, 20, 30]
    assert list(watched.get_ydata()) == [0.9, 0.2, 0.6, 0.4]
    assert list(best.get_xdata()) == [20, 20]
    assert "best: step 20" in [text.get_text() for text in right.texts]
    assert all(float(tick).is_integer() for tick in right.get_xticks())


def test_a_run_that_was_not_validated_yet(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run.log(step=1, loss=3.0)
    written = drawings(monkeypatch)
    (path,) = draw_run(run, tmp_path / "figures")
    check_picture(path)
    assert written[0].axes[0].get_title() == "training loss"  # too few steps for a mean


def test_a_run_without_a_step(run: Run, tmp_path: Path) -> None:
    assert draw_run(run, tmp_path / "figures") == []


def test_what_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a run, expected a folder that 'heterformer train' wrote"):
        draw_run(Run(tmp_path), tmp_path / "figures")
