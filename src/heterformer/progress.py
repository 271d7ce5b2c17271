"""Progress of anything that takes more than a few seconds: bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.segment import Segment
from rich.text import Text

from heterformer.escapes import encodable_text, terminal_text

LINE_EVERY = 30.0  # seconds between two lines where there is no terminal
_silent = False
_listener: Callable[[str], None] | None = None  # what takes messages instead of standard error
_stages: list[Stage] = []  # those under way, the innermost last


class DataConsole(Console):
    """A console on which names from data cannot act, and whose encoding may be any.

    Control and escape characters are written out; what the encoding lacks is replaced.
    """

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Every segment of text passes here, the cells of tables included."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=terminal_text(segment.text))

    def _render_buffer(self, buffer: Iterable[Segment]) -> str:
        """The last moment before writing: replaced in a cell, a longer replacement would be cropped."""
        return encodable_text(super()._render_buffer(buffer), self.encoding)


console = DataConsole()
messages = DataConsole(stderr=True)


def silence() -> None:
    """Print no more messages and bars, because another process of the run does; errors are still printed."""
    global _silent
    _silent = True


def say(sentence: str) -> None:
    """Print a message as it is: without markup, which a path may contain, and unwrapped, to be copied."""
    if _listener is not None:
        _listener(sentence)
    elif not _silent:
        messages.print(Text(sentence), soft_wrap=True)


@contextmanager
def messages_to(listener: Callable[[str], None]) -> Iterator[None]:
    """Hand all messages to ``listener``, such as a log; bars become messages too."""
    global _listener
    before, _listener = _listener, listener
    try:
        yield
    finally:
        _listener = before


@dataclass(eq=False)
class Stage:
    """A part of a long computation, as plain lines describe it; without a total its length is unknown."""

    description: str
    total: float | None = None
    completed: float = 0
    unit: str = ""
    started: float = field(default_factory=time.monotonic)
    initial: float = field(init=False)
    paused: float = 0.0  # seconds of other work, which say nothing about the speed
    paused_since: float | None = None

    def __post_init__(self) -> None:
        self.initial = self.completed

    def speed(self, now: float) -> float:
        """Units per second of this process's own work; 0 as long as it is unknown."""
        pause = 0.0 if self.paused_since is None else now - self.paused_since
        worked = now - self.started - self.paused - pause
        return (self.completed - self.initial) / worked if worked > 0 else 0.0

    def left(self, now: float) -> str:
        """The time until it is done, at the speed so far; nothing if that is unknown."""
        speed = self.speed(now)
        return _clock(max((self.total or 0) - self.completed, 0) / speed) if speed else ""

    def line(self, now: float) -> str:
        """Stage, share, speed and time left, as far as they are known."""
        elapsed = now - self.started
        if not self.total:
            return f"{self.description}: {_clock(elapsed)} elapsed"
        parts = [f"{min(self.completed / self.total, 1):.0%}"]
        if (speed := self.speed(now)) and self.unit:
            parts.append(_speed(speed, self.unit))
        left = f"{self.left(now)} left" if speed else "time left unknown"
        return f"{self.description}: {', '.join([*parts, _clock(elapsed) + ' elapsed', left])}"


class Bar:
    """Progress as long computations report it: ``advance`` and ``describe``."""

    def __init__(self, stage: Stage, progress: Progress | None = None) -> None:
        self._stage, self._progress = stage, progress
        self._task = (
            progress.add_task(stage.description, total=stage.total, completed=int(stage.completed))
            if progress
            else None
        )

    def advance(self, amount: float = 1) -> None:
        self._stage.completed += amount
        if self._progress is not None and self._task is not None:
            self._progress.advance(self._task, amount)

    def describe(self, text: str) -> None:
        self._stage.description = text
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, description=text)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Other work, such as a preparation that does not come again: the speed is that of the rest."""
        stage, began = self._stage, time.monotonic()
        stage.paused_since = began
        try:
            yield
        finally:
            stage.paused_since = None
            stage.paused += time.monotonic() - began


class _StageColumn(ProgressColumn):
    """What the stage itself knows; rich knows of no pauses, and of no speed where moves are minutes apart."""

    def __init__(self, stage: Stage) -> None:
        super().__init__()
        self.stage = stage


class _TimeLeft(_StageColumn):
    def render(self, task: Task) -> Text:
        return Text(self.stage.left(time.monotonic()) or "-:--:--", style="progress.remaining")


class _Speed(_StageColumn):
    def render(self, task: Task) -> Text:
        speed = self.stage.speed(time.monotonic())
        return Text(_speed(speed, self.stage.unit) if speed else "")


@contextmanager
def progress_bar(
    description: str, total: float, unit: str = "", completed: float = 0, shown: bool = True
) -> Iterator[Bar]:
    """Show progress on standard error: a bar that disappears when done or, without a terminal, plain lines.

    Args:
        description: What is being done.
        total: The amount at which it is done.
        unit: What is counted; with it, units per second are shown too.
        completed: What an earlier process has done already.
        shown: Whether a terminal shows it; not if another bar is on it meanwhile.
    """
    stage = Stage(description, total, completed, unit)
    if _silent or _listener or not messages.is_terminal or not shown:
        with _plain_stage(stage):
            yield Bar(stage)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        _TimeLeft(stage),
        *([_Speed(stage)] if unit else []),
    )
    with Progress(*columns, console=messages, transient=True) as progress:
        yield Bar(stage, progress)


@contextmanager
def waiting(description: str, spinner: bool = True) -> Iterator[None]:
    """Show on standard error that work of unknown length is under way.

    Without ``spinner`` a terminal shows nothing, because something else writes on it meanwhile.
    """
    if _silent or _listener or not messages.is_terminal or not spinner:
        with _plain_stage(Stage(description)):
            yield
        return
    dots = SpinnerColumn("dots" if messages.encoding.startswith("utf") else "line")
    columns = (dots, TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=messages, transient=True) as progress:
        progress.add_task(description, total=None)
        yield


@contextmanager
def plain_lines(description: str, every: float = LINE_EVERY) -> Iterator[None]:
    """Without a terminal, write a line about the innermost stage under way, ``every`` this many seconds.

    A thread writes them, because a stage may not move for minutes. Stages start one themselves if
    there is none, so that commands, which have one from their start to their end, are never silent for long.

    Args:
        description: What the lines say between stages.
        every: Seconds between two lines.
    """
    with _plain_stage(Stage(description), every):
        yield


@contextmanager
def _plain_stage(stage: Stage, every: float = LINE_EVERY) -> Iterator[None]:
    outermost = not _stages
    _stages.append(stage)
    done = threading.Event()
    if outermost:
        threading.Thread(target=_write_lines, args=(done, every), daemon=True).start()
    try:
        yield
    finally:
        _stages.remove(stage)
        done.set()


def _write_lines(done: threading.Event, every: float) -> None:
    while not done.wait(every):
        if _listener or not messages.is_terminal:
            for stage in _stages[-1:]:
                say(stage.line(time.monotonic()))


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))


def _speed(speed: float, unit: str) -> str:
    """Per second or, of what takes longer than that, per minute or hour."""
    for per, seconds in (("s", 1), ("min", 60)):
        if speed * seconds >= 1:
            return f"{_rounded(speed * seconds)} {unit}/{per}"
    return f"{_rounded(speed * 3600)} {unit}/h"


def _rounded(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.1f}"


def quiet_transformers() -> None:
    """Silence Transformers: our own progress bars are enough. Imported here because it takes seconds."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
