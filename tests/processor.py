"""The processor that tests run on has no bf16: their figures are the same on every machine."""

from __future__ import annotations

import pytest


def without_bf16(monkeypatch: pytest.MonkeyPatch) -> None:
    """What 'auto' chooses is float32; a test of that choice patches the same function anew."""
    monkeypatch.setattr("heterformer.device.has_bf16", lambda device: False)


def with_bf16(monkeypatch: pytest.MonkeyPatch) -> None:
    """What 'auto' chooses is bf16, emulated where it must be."""
    monkeypatch.setattr("heterformer.device.has_bf16", lambda device: True)
