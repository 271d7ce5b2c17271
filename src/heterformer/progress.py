"""Progress bars for anything that takes more than a few seconds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

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
    TimeRemainingColumn,
)
from rich.segment import Segment
from rich.text import Text

from heterformer.escapes import terminal_text

SPEED_PERIOD = 3600.0  # seconds over which a speed is averaged; rich averages at most 1,000 updates
_silent = False


class DataConsole(Console):
    """A console on which names from data cannot act: control and escape characters are written out."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Every segment of text passes here, the cells of tables included."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=terminal_text(segment.text))


console = DataConsole()
messages = DataConsole(stderr=True)


def silence() -> None:
    """Print no more messages and bars, because another process of the run does; errors are still printed."""
    global _silent
    _silent = True


def say(sentence: str) -> None:
    """Print a message as it is: without markup, which a path may contain, and unwrapped, to be copied."""
    if not _silent:
        messages.print(Text(sentence), soft_wrap=True)


class Bar:
    """A progress bar as long computations see it: ``advance`` and ``describe``."""

    def __init__(self, progress: Progress | None, total: float) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=total) if progress else None

    def advance(self, amount: float = 1) -> None:
        if self._progress is not None and self._task is not None:
            self._progress.advance(self._task, amount)

    def describe(self, text: str) -> None:
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, description=text)


class _Speed(ProgressColumn):
    """Units per second."""

    def __init__(self, unit: str) -> None:
        super().__init__()
        self.unit = unit

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.0f} {self.unit}/s")


@contextmanager
def progress_bar(description: str, total: float, unit: str = "") -> Iterator[Bar]:
    """A bar on standard error that disappears when done. With a ``unit`` it also shows units per second."""
    if _silent or not messages.is_terminal:
        yield Bar(None, total)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        *([_Speed(unit)] if unit else []),
    )
    # Updates of a slow model are minutes apart; with a shorter period rich would show no speed.
    with Progress(*columns, console=messages, transient=True, speed_estimate_period=SPEED_PERIOD) as progress:
        bar = Bar(progress, total)
        bar.describe(description)
        yield bar


@contextmanager
def waiting(description: str) -> Iterator[None]:
    """A spinner on standard error for work of unknown length; it disappears when done."""
    if _silent or not messages.is_terminal:
        yield
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=messages, transient=True) as progress:
        progress.add_task(description, total=None)
        yield
