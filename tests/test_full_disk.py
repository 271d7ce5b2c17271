"""A full disk, as a limit on the size of files: commands say which file, and leave nothing half-written."""

from __future__ import annotations

import resource
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from heterformer.cli.main import main
from heterformer.comparison.core import compare
from heterformer.comparison.job import Job
from heterformer.errors import InputError
from heterformer.search.store import SearchStore
from heterformer.training.options import TrainingOptions
from heterformer.training.run import Run
from heterformer.training.sinks.tensorboard import TensorBoard
from heterformer.training.train import train
from tests.failing import Failed
from tests.learning import tiny_network, tiny_options, tiny_reader
from tests.networks import files
from tests.search.searching import tiny_run


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """No file can grow beyond this size. Libraries meet the error that they would meet on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


COMMANDS = {
    "split NET OUT": (200, "s.parquet"),
    "export NET OUT --to hetero-data": (2000, "hetero"),
    "export NET OUT --to csv": (500, "csv"),
    "embed RUN OUT --device cpu": (1000, "vectors"),
}


@pytest.mark.parametrize("typed", COMMANDS)
def test_a_full_disk_is_one_sentence_that_names_the_output(
    typed: str, tmp_path: Path, failed: Failed
) -> None:
    size, name = COMMANDS[typed]
    places = {"NET": tiny_network().path, "RUN": tiny_run(), "OUT": tmp_path / name}
    words = [str(places.get(word, word)) for word in typed.split()]
    with room_for(size):
        told = failed(main, words)
    assert name in told
    assert "No space left on device" in told or "File too large" in told
    assert not (tmp_path / name).exists()
    assert {p for p in files(tmp_path) if not p.startswith(f".{name}.work")} == set()


@pytest.mark.parametrize(("command", "figure"), [("plot", "figures/training.png"), ("map", "map/map.png")])
def test_a_figure_without_room_is_not_there(
    tmp_path: Path, failed: Failed, command: str, figure: str
) -> None:
    run = shutil.copytree(tiny_run(), tmp_path / "run", ignore=shutil.ignore_patterns("figures", "map"))
    SearchStore.open(Run(run), tiny_network())  # the vectors of a map, which need more room
    before, folder = files(run), Path(figure).parent.name
    with room_for(5000):
        told = failed(main, [command, str(run)])
    assert told == f"{run}/{figure}: File too large."
    assert {p for p in files(run) if p != folder} == before
    main([command, str(run)])
    assert (run / figure).is_file()


def test_a_comparison_without_room_leaves_nothing_and_can_be_repeated(tmp_path: Path) -> None:
    out = tmp_path / "a" / "cmp"
    network, shared = tiny_network(), tiny_options(tiny_reader(), max_steps=2)
    done: list[str] = []

    def runner(job: Job) -> None:
        done.append(job.variant.name)

    with room_for(100), pytest.raises(OSError, match="File too large") as caught:
        compare(network, out, ["bert"], options=shared, runner=runner)
    assert Path(caught.value.filename) == out / "compare.yaml"
    assert files(tmp_path) == set()
    compare(network, out, ["bert"], options=shared, runner=runner)
    assert done == ["bert"]
    assert (out / "compare.yaml").is_file()


def test_curves_without_room_end_in_one_error_and_whole_records(tmp_path: Path) -> None:
    run = Run(tmp_path / "run")
    sink = TensorBoard(run, TrainingOptions())
    sink.log(1, {"loss": 0.5})
    before = sink.path.read_bytes()
    with room_for(len(before) + 10), pytest.raises(OSError, match="File too large") as caught:
        sink.log(2, {"loss": 0.25})
    assert caught.value.filename == str(sink.path)
    assert sink.path.read_bytes() == before
    sink.log(3, {"loss": 0.125})
    events = EventAccumulator(str(sink.path.parent)).Reload().Scalars("loss")
    assert [(event.step, event.value) for event in events] == [(1, 0.5), (3, 0.125)]


@pytest.mark.parametrize("size", [100, 20_000])  # not even room for the options; none for weights
def test_a_training_without_room_for_its_first_checkpoint_leaves_nothing(tmp_path: Path, size: int) -> None:
    network, options = tiny_network(), tiny_options(tiny_reader(), max_steps=2)
    with room_for(size), pytest.raises(OSError, match=r"File too large|No space left") as caught:
        train(network, tmp_path / "run", options)
    assert str(tmp_path / "run") in str(caught.value.filename)
    assert files(tmp_path) == set()


@pytest.mark.parametrize("size", [20_000, 60_000])  # not even room for a validation; none for weights
def test_a_run_that_has_a_checkpoint_keeps_it(tmp_path: Path, size: int) -> None:
    run = shutil.copytree(tiny_run(), tmp_path / "run")
    network, options = tiny_network(), tiny_options(tiny_reader(), max_steps=8)
    with (
        room_for(size),
        pytest.raises((InputError, OSError), match=r"File too large|No space left") as caught,
    ):
        train(network, run, options)
    assert isinstance(caught.value, InputError) == (size == 20_000)
    assert (run / "checkpoints" / "last" / "state.json").is_file()
    train(network, run, options)
