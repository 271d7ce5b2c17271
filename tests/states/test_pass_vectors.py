"""One pass over a network: the vectors of nodes read alone, and no text twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from heterformer.batches.batcher import Batcher
from heterformer.batches.sampling import SeededSampler
from heterformer.batches.visible import VisibleNetwork
from heterformer.models import Heterformer
from heterformer.models.inference import each_text, evaluating, vectors_of_type
from heterformer.states import pass_vectors
from heterformer.states.pass_vectors import PassVectors
from heterformer.states.store import StateStore, new_store
from tests.learning import count_texts, tiny_model, tiny_network, tiny_tokens

SAMPLER = SeededSampler(np.uint64(11))
MODELS: dict[str, dict[str, Any]] = {
    "one hop": {},
    "second hop": {"network_readout": "both", "second_hop": 4, "aggregation_init": "random"},
    "textless neighbours": {"second_hop": 4, "network_readout": "both", "textless_neighbors": 3},
    "no virtual tokens": {"virtual_tokens": "none"},
}


def opened(options: dict[str, Any]) -> tuple[Heterformer, Batcher]:
    model = tiny_model(**options).eval()
    return model, model.new_batcher(VisibleNetwork.whole(tiny_network()), tiny_tokens())


@pytest.mark.parametrize("name", MODELS)
def test_vectors_are_those_of_nodes_read_alone(name: str, tmp_path: Path) -> None:
    model, batcher = opened(MODELS[name])
    vectors = PassVectors(model, batcher, SAMPLER, tmp_path, nodes_at_once=7)
    for node_type, rows in {"paper": np.arange(5, 60), "author": np.arange(20)}.items():
        expected = vectors_of_type(model, batcher, node_type, rows, SAMPLER)
        torch.testing.assert_close(vectors(node_type, rows), expected, rtol=0, atol=1e-5)
        again = vectors(node_type, rows[::-1].copy())
        assert torch.equal(again.flip(0), vectors(node_type, rows))
    assert list(tmp_path.iterdir()) == []  # the files have no names


@pytest.mark.parametrize("name", ["one hop", "second hop", "textless neighbours"])
def test_no_text_is_read_twice(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, batcher = opened(MODELS[name])
    counts = count_texts(monkeypatch)
    vectors = PassVectors(model, batcher, SAMPLER, nodes_at_once=7)
    for start in (0, 40, 80):
        vectors("paper", np.arange(start, start + 60))
        vectors("author", np.arange(20))
    assert 0 < sum(counts) <= len(tiny_tokens())


@pytest.mark.parametrize("name", ["one hop", "second hop"])
def test_stored_states_are_not_read_again(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, batcher = opened(MODELS[name])
    expected = PassVectors(model, batcher, SAMPLER)("paper", np.arange(60))
    known = np.arange(0, len(tiny_tokens()), 2)
    with evaluating(model):
        states = each_text(model.text_states, tiny_tokens(), known, model.device)
    with new_store(tmp_path / "store", known, tuple(states.shape[1:]), np.float32, {}) as store:
        store.file.write(0, states.numpy())
    stored, read = StateStore.open(tmp_path / "store"), []
    assert stored is not None

    def recorded(states_of: Any, tokens: Any, numbers: Any, *rest: Any, **more: Any) -> torch.Tensor:
        read.extend(numbers.tolist())
        return each_text(states_of, tokens, numbers, *rest, **more)

    monkeypatch.setattr(pass_vectors, "each_text", recorded)
    found = PassVectors(model, batcher, SAMPLER, stored=stored)("paper", np.arange(60))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)
    assert read
    assert not np.isin(read, known).any()


@pytest.mark.parametrize("name", MODELS)
def test_progress_counts_each_node_once(name: str) -> None:
    model, batcher = opened(MODELS[name])
    steps = list[float]()
    vectors = PassVectors(model, batcher, SAMPLER, advance=steps.append, nodes_at_once=7)
    for rows in (np.arange(30), np.arange(20, 50)):
        vectors("paper", rows)
        vectors("author", np.arange(9))
    assert sum(steps) == pytest.approx(50 + 9)
