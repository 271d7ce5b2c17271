"""Commands that must fail, and what they say then."""

from __future__ import annotations

import pytest


class Failed:
    """The one sentence with which a command fails."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys

    def __call__(self, command: object, *arguments: object, **options: object) -> str:
        self.capsys.readouterr()
        with pytest.raises(SystemExit) as exit_:
            command(*arguments, **options)  # type: ignore[operator]
        captured = self.capsys.readouterr()
        assert exit_.value.code == 1
        assert captured.out == ""
        assert captured.err.startswith("error: ")
        assert captured.err.count("\n") == 1
        return captured.err.removeprefix("error: ").strip()
