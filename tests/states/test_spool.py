from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from heterformer.errors import InputError
from heterformer.states import spool as spool_module
from heterformer.states.spool import StateSpool, write_spool
from tests.networks import files

NUMBERS = np.array([2, 3, 7, 11, 40])
ROWS = np.random.default_rng(0).normal(size=(5, 2, 3)).astype(np.float32)


def written(folder: Path, dtype: Any = np.float32, numbers: NDArray[np.int64] = NUMBERS) -> StateSpool:
    with write_spool(folder, numbers, (2, 3), dtype, {"step": 5}) as write:
        for start in range(0, len(numbers), 2):
            write(start, ROWS[start : start + 2])
    spool = StateSpool.open(folder)
    assert spool is not None
    return spool


def test_a_row_is_found_by_its_texts_number_in_whatever_order(tmp_path: Path) -> None:
    spool = written(tmp_path / "spool")
    assert np.array_equal(spool.rows(np.array([40, 2, 7, 7])), ROWS[[4, 0, 2, 2]])
    assert spool.rows(NUMBERS[:0]).shape == (0, 2, 3)
    assert np.array_equal(spool.numbers, NUMBERS)


def test_half_the_room_for_half_the_digits(tmp_path: Path) -> None:
    rows = written(tmp_path / "spool", np.float16).rows(NUMBERS)
    assert rows.dtype == np.float16
    assert np.array_equal(rows, ROWS.astype(np.float16))
    sizes = {t: written(tmp_path / t, t).states.nbytes for t in ("float32", "float16")}
    assert sizes["float32"] == 2 * sizes["float16"] == 4 * ROWS.size


def test_rows_may_come_in_any_order(tmp_path: Path) -> None:
    with write_spool(tmp_path / "spool", NUMBERS, (2, 3), np.float32, {}) as write:
        for start in (3, 0, 1, 4, 2):
            write(start, ROWS[start : start + 1])
    spool = StateSpool.open(tmp_path / "spool")
    assert spool is not None
    assert np.array_equal(spool.states, ROWS)


def test_rows_are_copies_of_what_stays_on_the_disk(tmp_path: Path) -> None:
    spool = written(tmp_path / "spool")
    spool.rows(NUMBERS)[:] = 0
    assert np.array_equal(spool.rows(NUMBERS), ROWS)
    assert not spool.states.flags.writeable


@pytest.mark.parametrize("number", [0, 4, 41])
def test_a_text_that_is_not_there_is_not_taken_for_another(tmp_path: Path, number: int) -> None:
    with pytest.raises(KeyError, match=f"text {number} and 0 more are not among the spool's texts"):
        written(tmp_path / "spool").rows(np.array([3, number]))


def test_a_spool_of_no_texts(tmp_path: Path) -> None:
    spool = written(tmp_path / "spool", numbers=NUMBERS[:0])
    assert spool.rows(NUMBERS[:0]).shape == (0, 2, 3)
    with pytest.raises(KeyError):
        spool.rows(NUMBERS)


def test_what_is_to_be_remembered_may_be_known_at_the_end_only(tmp_path: Path) -> None:
    about = {"step": 5}
    with write_spool(tmp_path / "spool", NUMBERS, (2, 3), np.float32, about) as write:
        write(0, ROWS)
        about["seconds"] = 7
    spool = StateSpool.open(tmp_path / "spool")
    assert spool is not None
    assert spool.about == {"step": 5, "seconds": 7}


def test_a_new_spool_takes_an_old_ones_place(tmp_path: Path) -> None:
    written(tmp_path / "spool")
    spool = written(tmp_path / "spool", numbers=NUMBERS + 1)
    assert np.array_equal(spool.numbers, NUMBERS + 1)
    assert files(tmp_path) == {"spool", *(f"spool/{name}.npy" for name in ("numbers", "states"))} | {
        "spool/about.json"
    }


def test_nothing_is_seen_of_it_until_all_is_written(tmp_path: Path) -> None:
    with write_spool(tmp_path / "spool", NUMBERS, (2, 3), np.float32, {}) as write:
        write(0, ROWS)
        assert StateSpool.open(tmp_path / "spool") is None
    assert StateSpool.open(tmp_path / "spool") is not None


def test_nothing_stays_if_it_cannot_be_finished(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), write_spool(tmp_path / "s", NUMBERS, (2, 3), np.float32, {}):
        raise KeyboardInterrupt
    assert files(tmp_path) == set()


@pytest.mark.parametrize("name", ["about.json", "numbers.npy", "states.npy"])
def test_a_spool_that_is_damaged_is_none(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "spool"
    assert StateSpool.open(folder) is None
    for damage in ("cut", "emptied", "removed"):
        written(folder)
        file = folder / name
        if damage == "removed":
            file.unlink()
        else:
            file.write_bytes(file.read_bytes()[: -3 if damage == "cut" else 0])
        assert StateSpool.open(folder) is None, damage


def test_a_spool_some_of_whose_rows_were_never_written_is_none(tmp_path: Path) -> None:
    with write_spool(tmp_path / "spool", NUMBERS, (2, 3), np.float32, {}) as write:
        write(0, ROWS[:4])
    assert StateSpool.open(tmp_path / "spool") is None


def test_a_full_disk_is_told_in_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.BytesIO):
        def write(self, data: Any) -> int:
            raise OSError(28, "No space left on device")

    writer = spool_module._writer
    monkeypatch.setattr(spool_module, "_writer", lambda file, *rest: writer(Full(), *rest))
    with pytest.raises(InputError) as caught, write_spool(tmp_path / "s", NUMBERS, (2, 3), np.float32, {}):
        pass
    assert str(caught.value) == (
        f"{tmp_path / 's'}: the states of texts cannot be stored (No space left on device)."
    )
    assert files(tmp_path) == set()
