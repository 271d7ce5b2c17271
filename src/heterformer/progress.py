"""Progress bars for anything that takes more than a few seconds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
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
from rich.text import Text

MEMORY = 3600.0  # seconds that a speed is the mean of, at most; rich looks at the last thousand moves only
console = Console()
messages = Console(stderr=True)
_silent = False


def silence() -> None:
    """No more sentences and bars from this process, since another of the same run tells them; errors stay."""
    global _silent
    _silent = True


def say(sentence: str) -> None:
    """As it is: a path may hold what rich takes for markup, and nobody wants to copy a wrapped command."""
    if not _silent:
        messages.print(Text(sentence), soft_wrap=True)


class Bar:
    """One running bar; ``advance`` and ``describe`` are all a long computation needs to know."""

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
    """How many units were done per second lately."""

    def __init__(self, unit: str) -> None:
        super().__init__()
        self.unit = unit

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.0f} {self.unit}/s")


@contextmanager
def progress_bar(description: str, total: float, unit: str = "") -> Iterator[Bar]:
    """A bar on standard error that vanishes when done, so that results stay readable and pipes stay clean.

    With a ``unit`` it also tells how many of them are done per second.
    """
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
    # A slow model may take minutes between two moves, after which rich would know no speed and no time left.
    with Progress(*columns, console=messages, transient=True, speed_estimate_period=MEMORY) as progress:
        bar = Bar(progress, total)
        bar.describe(description)
        yield bar


@contextmanager
def waiting(description: str) -> Iterator[None]:
    """A line on standard error while something runs that cannot tell how far it is; it vanishes when done."""
    if _silent or not messages.is_terminal:
        yield
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=messages, transient=True) as progress:
        progress.add_task(description, total=None)
        yield
