from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
import torch

from heterformer.batches.batch import Texts
from heterformer.embedding import states as states_module
from heterformer.embedding.states import stored_states
from heterformer.models import Heterformer
from heterformer.network.tokens import PackedTokens
from tests.learning import tiny_model, tiny_tokens

COUNT = 200


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files go."""
    tiny_tokens()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def one_by_one(model: Heterformer, tokens: PackedTokens) -> torch.Tensor:
    found = []
    for number in range(len(tokens.offsets) - 1):
        packed, offsets = tokens.gather(np.array([number]))
        with torch.no_grad():
            found.append(model.text_states(Texts(torch.from_numpy(packed), torch.from_numpy(offsets))))
    return torch.cat(found)


@pytest.mark.parametrize("texts_at_a_time", [1, 7, COUNT, 4096])
def test_every_text_has_its_states(texts_at_a_time: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(states_module, "TEXTS", texts_at_a_time)
    model = tiny_model()
    with stored_states(model, tiny_tokens()) as stored:
        assert stored.shape == (COUNT, 1, 16)
        torch.testing.assert_close(torch.from_numpy(stored.copy()), one_by_one(model, tiny_tokens()))


def test_they_are_on_the_disk_and_go_with_the_block(temporary: Path) -> None:
    with stored_states(tiny_model(), tiny_tokens()) as stored:
        (file,) = temporary.rglob("states.bin")
        assert file.stat().st_size == stored.nbytes == COUNT * 16 * 4
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
        assert stored.shape == (COUNT, 0, 16)
        assert list(temporary.rglob("*.bin")) == []


def test_the_model_is_left_in_its_mode() -> None:
    model = tiny_model().train()
    with stored_states(model, tiny_tokens()):
        pass
    assert model.training
