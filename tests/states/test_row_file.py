from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from heterformer.states.row_file import RowFile, kept_array


def new(path: Path, count: int = 10, part: int = 4) -> RowFile:
    return RowFile(path / "rows.npy", count, (2, 3), np.float32, part)


def test_rows_come_back_from_whatever_part(tmp_path: Path) -> None:
    values = np.arange(60, dtype=np.float32).reshape(10, 2, 3)
    file = new(tmp_path)
    for start, stop in [*file.missing()][::-1]:
        file.write(start, values[start:stop])
    assert (file.read(np.array([9, 0, 9, 5])) == values[[9, 0, 9, 5]]).all()
    assert (file.read(slice(3, 7)) == values[3:7]).all()


def test_only_parts_that_were_written_are_done(tmp_path: Path) -> None:
    file = new(tmp_path)
    assert [*file.missing()] == [(0, 4), (4, 8), (8, 10)]
    file.write(4, np.ones((4, 2, 3)))
    assert [*new(tmp_path).missing()] == [(0, 4), (8, 10)]
    assert (new(tmp_path).read(slice(4, 8)) == 1).all()


def test_a_note_that_a_kill_cut_does_not_count(tmp_path: Path) -> None:
    file = new(tmp_path, count=100)
    file.write(4, np.ones((4, 2, 3)))
    with (tmp_path / "rows.0.done").open("a") as done:
        done.write("96 10")  # of 100
    assert (96, 100) in [*new(tmp_path, count=100).missing()]
    assert (4, 8) not in [*new(tmp_path, count=100).missing()]


def test_notes_about_a_file_that_is_gone_do_not_count(tmp_path: Path) -> None:
    new(tmp_path).write(0, np.ones((4, 2, 3)))
    (tmp_path / "rows.npy").unlink()
    assert [*new(tmp_path).missing()] == [(0, 4), (4, 8), (8, 10)]


@pytest.mark.parametrize("count", [0, 3])
def test_rows_without_numbers(tmp_path: Path, count: int) -> None:
    file = RowFile(tmp_path / "rows.npy", count, (0, 3), np.float32)
    assert file.read(np.arange(count)).shape == (count, 0, 3)
    assert file.read(slice(0, count)).shape == (count, 0, 3)


def test_an_array_is_made_once(tmp_path: Path) -> None:
    made = []

    def make() -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        made.append(1)
        return np.arange(3)

    for _ in range(2):
        assert kept_array(tmp_path / "a.npy", make).tolist() == [0, 1, 2]
    assert made == [1]


def test_an_array_that_could_not_be_made_leaves_nothing(tmp_path: Path) -> None:
    def fail() -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        raise KeyError

    with pytest.raises(KeyError):
        kept_array(tmp_path / "a.npy", fail)
    assert list(tmp_path.iterdir()) == []
