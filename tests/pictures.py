"""What a test can say of a picture without looking at it."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure


def size_of(path: Path) -> tuple[int, int]:
    """Width and height of a PNG file."""
    start = path.read_bytes()[:24]
    assert start[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", start[16:24])
    return width, height


def check_picture(path: Path, tallest: int = 800) -> None:
    """A figure of one column, neither empty nor heavy."""
    width, height = size_of(path)
    assert width == 660
    assert 200 <= height <= tallest
    assert 5_000 < path.stat().st_size < 200_000


def drawings(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures that are written from now on."""
    found: list[Figure] = []
    save = Figure.savefig

    def savefig(self: Figure, *args: Any, **more: Any) -> None:
        found.append(self)
        save(self, *args, **more)

    monkeypatch.setattr(Figure, "savefig", savefig)
    return found
