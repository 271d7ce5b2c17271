"""Rows read and written where they stand: the right ones, with one call for each run of neighbouring rows."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heterformer.states.positioned import read_rows, write_rows

VALUES = np.arange(60, dtype=np.float32).reshape(10, 2, 3)


@pytest.fixture
def descriptor(tmp_path: Path) -> Any:
    with (tmp_path / "rows").open("w+b") as file:
        yield file.fileno()


def counted(monkeypatch: pytest.MonkeyPatch, name: str) -> list[int]:
    """The bytes of each call of one function of the operating system."""
    calls, call = list[int](), getattr(os, name)

    def counting(*arguments: Any) -> int:
        calls.append(call(*arguments))
        return calls[-1]

    monkeypatch.setattr(os, name, counting)
    return calls


def test_rows_that_follow_each_other_are_written_and_read_together(
    descriptor: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes, reads = counted(monkeypatch, "pwrite"), counted(monkeypatch, "preadv")
    for rows in ([7, 8, 9], [0, 1, 5, 6], [4, 3, 2]):  # a run, two runs, none
        write_rows(descriptor, VALUES[rows], np.array(rows))
    assert writes == [3 * 24, 2 * 24, 2 * 24, 24, 24, 24]
    found = np.empty_like(VALUES)
    assert read_rows(descriptor, found, np.arange(10), 24, 0)
    assert np.array_equal(found, VALUES)
    assert reads == [240]


def test_a_part_of_each_row_is_read_alone(descriptor: int, monkeypatch: pytest.MonkeyPatch) -> None:
    write_rows(descriptor, VALUES, np.arange(10))
    reads = counted(monkeypatch, "preadv")
    found = np.empty((3, 3), dtype=np.float32)
    assert read_rows(descriptor, found, np.array([9, 0, 1]), 24, 12)
    assert np.array_equal(found, VALUES[[9, 0, 1], 1])
    assert reads == [12, 12, 12]


def test_a_file_that_ends_too_early_is_told(descriptor: int) -> None:
    write_rows(descriptor, VALUES, np.arange(10))
    os.truncate(descriptor, 230)
    assert read_rows(descriptor, np.empty((9, 2, 3), np.float32), np.arange(9), 24, 0)
    assert not read_rows(descriptor, np.empty((10, 2, 3), np.float32), np.arange(10), 24, 0)


def test_a_write_that_takes_a_part_goes_on(descriptor: int, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda d, data, offset: write(d, data[:100], offset))
    write_rows(descriptor, VALUES, np.arange(10))
    found = np.empty_like(VALUES)
    assert read_rows(descriptor, found, np.arange(10), 24, 0)
    assert np.array_equal(found, VALUES)


@pytest.mark.parametrize("shape", [(0, 2, 3), (4, 0, 3)])
def test_nothing_to_read_or_write(descriptor: int, shape: tuple[int, ...]) -> None:
    rows = np.arange(shape[0])
    write_rows(descriptor, np.empty(shape, np.float32), rows)
    assert read_rows(descriptor, np.empty(shape, np.float32), rows, 0, 0)
