from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from heterformer.errors import InputError
from heterformer.states.row_file import RowFile
from heterformer.states.store import StateStore, new_store
from tests.networks import files

NUMBERS = np.array([2, 3, 7, 11, 40])
ROWS = np.random.default_rng(0).normal(size=(5, 2, 3)).astype(np.float32)


def written(folder: Path, dtype: Any = np.float32, numbers: NDArray[np.int64] = NUMBERS) -> StateStore:
    with new_store(folder, numbers, (2, 3), dtype, {"step": 5}, part=2) as store:
        for start in range(0, len(numbers), 2):
            store.file.write(start, ROWS[start : start + 2])
    store = StateStore.open(folder)
    assert store is not None
    return store


def test_a_row_is_found_by_its_texts_number_in_whatever_order(tmp_path: Path) -> None:
    store = written(tmp_path / "store")
    assert np.array_equal(store.read(np.array([40, 2, 7, 7])), ROWS[[4, 0, 2, 2]])
    assert store.read(NUMBERS[:0]).shape == (0, 2, 3)
    assert np.array_equal(store.text_rows, NUMBERS)


def test_half_the_room_for_half_the_digits(tmp_path: Path) -> None:
    rows = written(tmp_path / "store", np.float16).read(NUMBERS)
    assert rows.dtype == np.float16
    assert np.array_equal(rows, ROWS.astype(np.float16))
    sizes = {t: written(tmp_path / t, t).read(NUMBERS).nbytes for t in ("float32", "float16")}
    assert sizes["float32"] == 2 * sizes["float16"] == 4 * ROWS.size


def test_rows_may_come_in_any_order(tmp_path: Path) -> None:
    with new_store(tmp_path / "store", NUMBERS, (2, 3), np.float32, {}, part=1) as store:
        for start in (3, 0, 1, 4, 2):
            store.file.write(start, ROWS[start : start + 1])
    store = StateStore.open(tmp_path / "store")
    assert store is not None
    assert np.array_equal(store.read(NUMBERS), ROWS)
    assert np.array_equal(np.load(tmp_path / "store" / "states.npy"), ROWS)  # for any tool


def test_rows_are_copies_of_what_stays_on_the_disk(tmp_path: Path) -> None:
    store = written(tmp_path / "store")
    store.read(NUMBERS)[:] = 0
    assert np.array_equal(store.read(NUMBERS), ROWS)


@pytest.mark.parametrize("number", [0, 4, 41])
def test_a_text_that_is_not_there_is_not_taken_for_another(tmp_path: Path, number: int) -> None:
    with pytest.raises(KeyError, match=f"text {number} and 0 more are not among the stored texts"):
        written(tmp_path / "store").read(np.array([3, number]))


def test_a_store_of_no_texts(tmp_path: Path) -> None:
    store = written(tmp_path / "store", numbers=NUMBERS[:0])
    assert store.read(NUMBERS[:0]).shape == (0, 2, 3)
    with pytest.raises(KeyError):
        store.read(NUMBERS)


def test_what_is_to_be_remembered_may_be_known_at_the_end_only(tmp_path: Path) -> None:
    about = {"step": 5}
    with new_store(tmp_path / "store", NUMBERS, (2, 3), np.float32, about) as store:
        store.file.write(0, ROWS)
        about["seconds"] = 7
    store = StateStore.open(tmp_path / "store")
    assert store is not None
    assert store.about == {"step": 5, "seconds": 7}


def test_a_new_store_takes_an_old_ones_place(tmp_path: Path) -> None:
    written(tmp_path / "store")
    store = written(tmp_path / "store", numbers=NUMBERS + 1)
    assert np.array_equal(store.text_rows, NUMBERS + 1)
    assert files(tmp_path) == {"store", *(f"store/{name}.npy" for name in ("numbers", "states"))} | {
        "store/about.json",
        "store/states.0.done",
    }


def test_nothing_is_seen_of_it_until_all_is_written(tmp_path: Path) -> None:
    with new_store(tmp_path / "store", NUMBERS, (2, 3), np.float32, {}) as store:
        store.file.write(0, ROWS)
        assert StateStore.open(tmp_path / "store") is None
    assert StateStore.open(tmp_path / "store") is not None


def test_nothing_stays_if_it_cannot_be_finished(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), new_store(tmp_path / "s", NUMBERS, (2, 3), np.float32, {}):
        raise KeyboardInterrupt
    assert files(tmp_path) == set()


@pytest.mark.parametrize("name", ["about.json", "numbers.npy", "states.npy"])
def test_a_store_that_is_damaged_is_none(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "store"
    assert StateStore.open(folder) is None
    for damage in ("cut", "emptied", "removed"):
        written(folder)
        file = folder / name
        if damage == "removed":
            file.unlink()
        else:
            file.write_bytes(file.read_bytes()[: -3 if damage == "cut" else 0])
        assert StateStore.open(folder) is None, damage


def test_a_store_some_of_whose_rows_were_never_written_is_none(tmp_path: Path) -> None:
    with (
        pytest.raises(ValueError, match="rows 4 to 5 were never written"),
        new_store(tmp_path / "store", NUMBERS, (2, 3), np.float32, {}, part=4) as store,
    ):
        store.file.write(0, ROWS[:4])
    assert StateStore.open(tmp_path / "store") is None
    assert files(tmp_path) == set()
    written(tmp_path / "store")
    (done,) = (tmp_path / "store").glob("*.done")
    done.write_text("0 2\n2 4\n")
    assert StateStore.open(tmp_path / "store") is None


def test_states_that_version_0_1_stored_are_read(tmp_path: Path) -> None:
    """Those of a cached run that was stopped: two arrays, without a list of parts."""
    np.save(tmp_path / "numbers.npy", NUMBERS)
    np.save(tmp_path / "states.npy", ROWS)
    (tmp_path / "about.json").write_text('{"step": 5}')
    store = StateStore.open(tmp_path)
    assert store is not None
    assert store.about == {"step": 5}
    assert np.array_equal(store.read(NUMBERS[::-1]), ROWS[::-1])


def test_a_full_disk_is_told_in_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: RowFile, start: int, values: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(RowFile, "write", full)
    with (
        pytest.raises(InputError) as caught,
        new_store(tmp_path / "s", NUMBERS, (2, 3), np.float32, {}) as store,
    ):
        store.file.write(0, ROWS)
    assert str(caught.value) == (
        f"{tmp_path / 's'}: the states of texts cannot be stored (No space left on device)."
    )
    assert files(tmp_path) == set()
