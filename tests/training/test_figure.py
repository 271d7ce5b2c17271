from __future__ import annotations

from pathlib import Path

import pytest

from heterformer.errors import InputError
from heterformer.training.figure import draw_run
from heterformer.training.run import Run
from tests.learning import tiny_network, tiny_options, tiny_reader
from tests.pictures import check_picture


@pytest.fixture
def run(tmp_path: Path) -> Run:
    found = Run(tmp_path / "run")
    found.start(tiny_network(), tiny_options(tiny_reader()))
    return found


def test_loss_and_validation(run: Run, tmp_path: Path) -> None:
    for step in range(1, 101):
        run.log(step=step, loss=3.0 / step)
        if step % 25 == 0:
            run.log(step=step, validation={"prec": step / 200, "mrr": step / 150, "ndcg": step / 120})
    (path,) = draw_run(run, tmp_path / "figures")
    assert path == tmp_path / "figures" / "training.png"
    check_picture(path)


def test_a_run_that_was_not_validated_yet(run: Run, tmp_path: Path) -> None:
    run.log(step=1, loss=3.0)
    (path,) = draw_run(run, tmp_path / "figures")
    check_picture(path)


def test_a_run_without_a_step(run: Run, tmp_path: Path) -> None:
    assert draw_run(run, tmp_path / "figures") == []


def test_what_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a run, expected a folder that 'heterformer train' wrote"):
        draw_run(Run(tmp_path), tmp_path / "figures")
