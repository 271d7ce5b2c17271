from __future__ import annotations

import io

import pytest
from rich.console import Console

from heterformer import progress
from heterformer.progress import progress_bar, waiting


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
    now, tasks = 0.0, []
    monkeypatch.setattr(progress, "messages", Console(file=io.StringIO(), force_terminal=True, width=80))
    with progress_bar("embedding", 40_960, "nodes") as bar:
        assert bar._progress is not None
        bar._progress.get_time = lambda: now
        bar._progress.reset(0, total=40_960)
        for _ in range(4):
            now += 110.0
            bar.advance(4096)
        tasks = list(bar._progress.tasks)
    assert tasks[0].speed == pytest.approx(4096 / 110)
    assert tasks[0].time_remaining == pytest.approx(6 * 110)
