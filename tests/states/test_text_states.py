from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from heterformer.batches.batch import Texts
from heterformer.models import Heterformer
from heterformer.network.tokens import PackedTokens
from heterformer.progress import Bar
from heterformer.states import text_states as states_module
from heterformer.states.text_states import TextStates, stored_states
from tests.learning import tiny_model, tiny_tokens

COUNT = 200


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files go."""
    tiny_tokens()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def main_process_first(model: Heterformer, tokens: PackedTokens) -> torch.Tensor:
    found = []
    for number in range(len(tokens)):
        packed, offsets = tokens.gather(np.array([number]))
        with torch.no_grad():
            found.append(model.text_states(Texts(torch.from_numpy(packed), torch.from_numpy(offsets))))
    return torch.cat(found)


def test_every_text_has_its_states() -> None:
    model = tiny_model()
    with stored_states(model, tiny_tokens()) as stored:
        found = stored(np.arange(COUNT))
    assert found.shape == (COUNT, 2, 16)
    torch.testing.assert_close(found, main_process_first(model, tiny_tokens()))


def test_some_texts_are_found_by_their_numbers(tmp_path: Path) -> None:
    model, numbers = tiny_model(), np.array([3, 5, 90, 199])
    states = TextStates(tmp_path / "states", model, tiny_tokens(), numbers, np.float32)
    states.fill()
    expected = main_process_first(model, tiny_tokens())
    torch.testing.assert_close(states(np.array([199, 3, 199])), expected[[199, 3, 199]])


def test_in_half_precision_they_take_half_the_space(tmp_path: Path) -> None:
    states = TextStates(tmp_path / "half", tiny_model(), tiny_tokens(), np.arange(COUNT), np.float16)
    states.fill()
    assert states.store.file.row_bytes == 2 * 16 * 2
    assert np.load(tmp_path / "half" / "states.npy").nbytes == COUNT * 2 * 16 * 2
    expected = main_process_first(tiny_model(), tiny_tokens())
    torch.testing.assert_close(states(np.arange(COUNT)), expected, rtol=1e-3, atol=1e-3)


def test_what_is_there_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def opened() -> TextStates:
        return TextStates(tmp_path / "states", model, tiny_tokens(), np.arange(COUNT), np.float32, part=50)

    model, read = tiny_model(), []
    states = opened()
    (start, stop), *_ = states.store.file.missing()
    states.store.file.write(start, np.full((stop - start, 2, 16), 7.0))
    whole = states_module.each_text

    def counted(*arguments: Any) -> torch.Tensor:
        read.append(len(arguments[2]))
        return whole(*arguments)

    monkeypatch.setattr(states_module, "each_text", counted)
    again = opened()
    again.fill()
    assert sum(read) == COUNT - 50
    assert (again(np.arange(50)) == 7).all()
    torch.testing.assert_close(again(np.arange(50, COUNT)), main_process_first(model, tiny_tokens())[50:])


def test_progress_moves_with_every_batch_not_every_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moves: list[float] = []
    monkeypatch.setattr(Bar, "advance", lambda self, amount=1: moves.append(amount))
    numbers = np.arange(COUNT)
    states = TextStates(tmp_path, tiny_model(), tiny_tokens(), numbers, np.float32, tokens_per_batch=100)
    states.fill()
    assert len(moves) > 10
    assert sum(moves) == COUNT


def test_they_are_on_the_disk_and_go_with_the_block(temporary: Path) -> None:
    with stored_states(tiny_model(), tiny_tokens()):
        (file,) = temporary.rglob("states.npy")
        assert np.load(file).nbytes == COUNT * 2 * 16 * 4
    assert list(temporary.iterdir()) == []


def test_they_go_though_the_block_fails(temporary: Path) -> None:
    with pytest.raises(KeyError), stored_states(tiny_model(), tiny_tokens()):
        raise KeyError
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("virtual_tokens", ["none", "textless"])
def test_a_model_that_looks_at_no_neighbours_text_stores_nothing(
    temporary: Path, virtual_tokens: str
) -> None:
    with stored_states(tiny_model(virtual_tokens=virtual_tokens), tiny_tokens()) as stored:
        assert stored(np.arange(COUNT)).shape == (COUNT, 0, 16)
        assert [np.load(file).nbytes for file in temporary.rglob("*.npy")] == [0, 0]


def test_the_model_is_left_in_its_mode() -> None:
    model = tiny_model().train()
    with stored_states(model, tiny_tokens()):
        pass
    assert model.training
