from __future__ import annotations

import io

import pytest
from rich.console import Console

from heterformer import progress
from heterformer.progress import waiting


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
