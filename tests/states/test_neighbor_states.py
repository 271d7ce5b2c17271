from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import AutoTokenizer

from heterformer.arrays import Ints
from heterformer.batches.sampling import SeededSampler
from heterformer.batches.stable import StableSampler
from heterformer.batches.visible import VisibleNetwork
from heterformer.embedding.two_passes import Embedding
from heterformer.models import Heterformer
from heterformer.models.inference import center_vectors, drawn_once, neighbor_text_rows
from heterformer.states.neighbor_states import NeighborStates, stored_neighbor_states
from heterformer.states.text_states import TextStates
from tests.learning import tiny_model, tiny_network, tiny_reader, tiny_tokens

SAMPLER = SeededSampler(np.uint64(11))
EVERY = np.arange(200)


def with_second_hop(**options: Any) -> Heterformer:
    """A model that reads neighbours of neighbours."""
    return tiny_model(network_readout="both", second_hop=4, aggregation_init="random", **options).eval()


def literal_states(model: Heterformer, text: int) -> Tensor:
    """(S, d): the states of a text as a neighbour, all by itself."""
    batcher = model.new_batcher(VisibleNetwork.whole(tiny_network()), tiny_tokens())
    draw = batcher.further_neighbors(SAMPLER)
    assert draw is not None
    batch = batcher.texts_with_neighbors(np.array([text]), draw)
    with torch.no_grad():
        states = model.text_states(batch.texts.first(batch.neighbor_texts))
        states[:, -1] = model.final_vectors(batch, states[:, -1])
    return states[int(np.searchsorted(neighbor_text_rows(batch), text))]


def test_the_last_state_has_the_texts_neighbours_in_it() -> None:
    model = with_second_hop()
    batcher = model.new_batcher(VisibleNetwork.whole(tiny_network()), tiny_tokens())
    with stored_neighbor_states(model, batcher, SAMPLER) as states:
        found = states(EVERY)
    for text in (0, 5, 17, 199):
        torch.testing.assert_close(found[text], literal_states(model, text))


def test_without_a_second_hop_they_are_the_texts_own() -> None:
    model = tiny_model(network_readout="both").eval()
    batcher = model.new_batcher(VisibleNetwork.whole(tiny_network()), tiny_tokens())
    with stored_neighbor_states(model, batcher, SAMPLER) as states:
        assert isinstance(states, TextStates)


@pytest.mark.parametrize("stored", [True, False])
def test_vectors_are_those_of_batches_with_a_second_hop(stored: bool) -> None:
    model, rows = with_second_hop(), np.array([3, 60, 61, 150])
    batcher = model.new_batcher(VisibleNetwork.whole(tiny_network()), tiny_tokens())
    with torch.no_grad():
        expected = model.encode_batch(batcher.nodes("paper", rows, SAMPLER))
    if stored:
        with stored_neighbor_states(model, batcher, SAMPLER) as states:
            found = center_vectors(model, batcher, "paper", rows, SAMPLER, states)
    else:
        found = center_vectors(model, batcher, "paper", rows, SAMPLER, nodes_at_once=3, tokens_per_batch=20)
    torch.testing.assert_close(found, expected)


def test_what_a_kill_left_is_not_computed_again(tmp_path: Path) -> None:
    model = with_second_hop()
    batcher = model.new_batcher(VisibleNetwork.whole(tiny_network()), tiny_tokens())
    second_hop = drawn_once(batcher, SAMPLER)
    assert second_hop is not None
    texts = TextStates(tmp_path / "texts", model, tiny_tokens(), EVERY, np.float32)
    texts.fill()
    near, asked = np.arange(0, 200, 2), list[int]()

    def noted(node_type: str, rows: Ints) -> Iterator[Any]:
        if len(asked) >= 60:
            raise KeyboardInterrupt
        asked.extend(rows.tolist())
        return iter(second_hop(node_type, rows))

    def states(hop: Any) -> NeighborStates:
        return NeighborStates(tmp_path / "near", model, batcher, hop, texts, near, part=30)

    with pytest.raises(KeyboardInterrupt):
        states(noted).fill()
    again = list[int]()

    def noted_again(node_type: str, rows: Ints) -> Iterator[Any]:
        again.extend(rows.tolist())
        return iter(second_hop(node_type, rows))

    resumed = states(noted_again)
    resumed.fill()
    assert asked == near[:60].tolist()
    assert again == near[60:].tolist()
    torch.testing.assert_close(resumed(np.array([62]))[0], literal_states(model, 62))


def test_an_embedding_draws_each_neighbourhood_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """First hop and second hop, signatures, vectors and all."""
    drawn: dict[tuple[str, int], list[int]] = {}
    sample = StableSampler.sample

    def noted(
        self: StableSampler, visible: Any, center: str, near: str, rows: Ints, k: int, *more: Any
    ) -> Any:
        if center == "paper":
            drawn.setdefault((near, k), []).extend(rows.tolist())
        return sample(self, visible, center, near, rows, k, *more)

    monkeypatch.setattr(StableSampler, "sample", noted)
    model = with_second_hop()
    tokenizer = AutoTokenizer.from_pretrained(tiny_reader())
    visible = VisibleNetwork.whole(tiny_network())
    work = Embedding(model, visible, tokenizer=tokenizer, part=64, tokens_per_batch=100)
    with tempfile.TemporaryDirectory() as folder:
        work.compute(Path(folder))
    assert {count for _, count in drawn} >= {4}
    for rows in drawn.values():
        assert len(rows) == len(set(rows))
