from __future__ import annotations

import inspect
import io
import threading
from types import SimpleNamespace

import pytest
from rich.console import Console
from rich.text import Text

from heterformer import progress
from heterformer.progress import Bar, Stage, messages_to, plain_lines, progress_bar, say, waiting

LINES = 0.01  # seconds between plain lines


class Written(io.StringIO):
    """A stream that is no terminal; ``wait_for`` blocks until something is written on it."""

    def __init__(self) -> None:
        super().__init__()
        self.changed = threading.Condition()

    def write(self, text: str) -> int:
        with self.changed:
            count = super().write(text)
            self.changed.notify_all()
        return count

    def wait_for(self, text: str) -> bool:
        with self.changed:
            return self.changed.wait_for(lambda: text in self.getvalue(), timeout=30)


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Written:
    stream = Written()
    monkeypatch.setattr(progress, "messages", Console(file=stream, width=80))
    return stream


def test_lines_come_by_themselves_where_there_is_no_terminal(written: Written) -> None:
    """A step may take minutes: nothing moves here, and lines are written all the same."""
    with plain_lines("train", every=LINES):
        assert written.wait_for("train: 0:00:00 elapsed\n")
        with progress_bar("reading [texts]", 200, "texts") as bar:
            assert written.wait_for("reading [texts]: 0%, 0:00:00 elapsed, time left unknown\n")
            bar.advance(50)
            assert written.wait_for("reading [texts]: 25%, ")
            bar.describe("epoch 1")
            with waiting("drawing"):
                assert written.wait_for("drawing: 0:00:00 elapsed\n")
            assert written.wait_for("epoch 1: 25%, ")


def test_lines_are_half_a_minute_apart_at_most() -> None:
    assert inspect.signature(plain_lines).parameters["every"].default <= 30


def test_lines_end_with_their_work(written: Written) -> None:
    def writers() -> list[threading.Thread]:
        # Other threads of the process (trackers, caches) may start and end meanwhile.
        return [thread for thread in threading.enumerate() if "_write_lines" in thread.name]

    with plain_lines("train", every=LINES):
        assert written.wait_for("train: ")
        [writer] = writers()
    writer.join(30)
    assert not writer.is_alive()
    assert not writers()


def test_another_process_writes_the_lines(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_silent", True)
    with plain_lines("train", every=LINES), progress_bar("training", 10) as bar:
        threading.Event().wait(5 * LINES)
        bar.advance()
    assert written.getvalue() == ""


@pytest.mark.parametrize(
    ("stage", "line"),
    [
        (
            Stage("training", 100, 25, "steps", started=0.0),
            "training: 25%, 0:00:50 elapsed, time left unknown",
        ),
        (Stage("map", started=0.0), "map: 0:00:50 elapsed"),
        (Stage("map", 0, started=0.0), "map: 0:00:50 elapsed"),
    ],
)
def test_a_line_says_what_is_known(stage: Stage, line: str) -> None:
    assert stage.line(now=50.0) == line


@pytest.mark.parametrize(
    ("done", "line"),
    [
        (5_000, "55%, 100 steps/s, 0:00:50 elapsed, 0:00:50 left"),
        (100, "10%, 2.0 steps/s, 0:00:50 elapsed, 1:22:30 left"),
        (25, "9%, 30 steps/min, 0:00:50 elapsed, 5:32:30 left"),
    ],
)
def test_speed_and_time_left_are_those_of_this_process(done: int, line: str) -> None:
    """What an earlier process did in other times says nothing about this one's speed."""
    stage = Stage("training", 11_000, 1_000, "steps", started=0.0)
    stage.completed += done
    assert stage.line(now=50.0) == f"training: {line}"


def test_hours_for_what_is_slow() -> None:
    assert progress._speed(0.5 / 60, "epochs") == "30 epochs/h"


@pytest.mark.parametrize(("terminal", "shown"), [(True, True), (False, False)])
def test_a_line_while_waiting_on_a_terminal_only(
    terminal: bool, shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = io.StringIO()
    monkeypatch.setattr(progress, "messages", Console(file=written, force_terminal=terminal, width=80))
    with waiting("laying out [the] map"):
        pass
    assert ("laying out [the] map" in written.getvalue()) == shown
    assert bool(written.getvalue()) == shown


def test_slow_parts_have_a_speed_and_a_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Minutes between two moves are no reason to say nothing."""
    written = io.StringIO()
    monkeypatch.setattr(progress, "messages", Console(file=written, force_terminal=True, width=120))
    with progress_bar("embedding", 40_960, "nodes") as bar:
        monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: bar._stage.started + 440.0))
        bar.advance(4 * 4096)
        assert bar._progress is not None
        bar._progress.refresh()
    assert "0:11:00 37 nodes/s" in Text.from_ansi(written.getvalue()).plain


def test_a_pause_does_not_count_as_slowness(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now))
    stage = Stage("training", 100, unit="steps", started=0.0)
    bar = Bar(stage)
    now = 5.0
    with bar.paused():
        now = 1_005.0
        assert stage.line(now) == "training: 0%, 0:16:45 elapsed, time left unknown"
    bar.advance(10)
    now = 1_020.0
    assert stage.line(now) == "training: 10%, 30 steps/min, 0:17:00 elapsed, 0:03:00 left"


def test_a_listener_takes_all_messages(capsys: pytest.CaptureFixture[str]) -> None:
    taken: list[str] = []
    with messages_to(taken.append):
        say("one [b]sentence[/b].")
        with progress_bar("counting", 3) as bar:
            bar.advance(3)
    assert taken[0] == "one [b]sentence[/b]."
    assert capsys.readouterr().err == ""
    say("again on standard error.")
    assert "again" in capsys.readouterr().err
