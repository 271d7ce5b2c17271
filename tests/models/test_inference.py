from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from transformers import AutoModel

from heterformer.batches.batcher import Batcher
from heterformer.batches.sampling import SeededSampler
from heterformer.batches.visible import VisibleNetwork
from heterformer.models import Heterformer, inference
from heterformer.models.inference import center_vectors, each_text, evaluating, plm_vectors
from heterformer.network.build.frames import temporary_folder
from heterformer.network.store import Network
from heterformer.network.tokens import open_tokens
from tests.learning import tiny_model, tiny_network, tiny_reader, tiny_tokens
from tests.models.random_batches import save_backbone
from tests.networks import VOCABULARY, Facts, few, networks, tokenizer

SAMPLER = SeededSampler(np.uint64(7))
VIRTUAL_TOKENS = ("both", "text_rich", "textless", "none")


@cache
def backbone() -> str:
    sizes = {"vocab_size": len(VOCABULARY), "max_position_embeddings": 64, "pad_token_id": 0}
    return save_backbone(temporary_folder(), **sizes)


def new_model(network: Network, virtual_tokens: str) -> Heterformer:
    torch.manual_seed(0)
    return Heterformer.from_backbone(
        backbone(), network, aggregation_init="random", virtual_tokens=virtual_tokens
    )


def batcher_of(network: Network) -> Batcher:
    return Batcher(VisibleNetwork.whole(network), open_tokens(network, tokenizer()))


def states_of(model: Heterformer, batcher: Batcher, more: float = 0.0) -> inference.StoredStates:
    count = len(batcher.tokens)
    states = each_text(model.text_states, batcher.tokens, np.arange(count), model.device) + more
    return lambda numbers: states[torch.from_numpy(numbers)]


@few
@given(networks(), st.integers(1, 9), st.integers(1, 60), st.sampled_from(VIRTUAL_TOKENS))
def test_equals_the_model_whatever_the_sizes(
    facts: Facts, block: int, tokens: int, virtual_tokens: str
) -> None:
    with facts.built() as network:
        model, batcher = new_model(network, virtual_tokens), batcher_of(network)
        stored = states_of(model, batcher)
        for node_type in network.schema.text_rich:
            rows = np.random.default_rng(0).permutation(network.schema.counts[node_type])
            with torch.no_grad():
                expected = model.encode_batch(batcher.nodes(node_type, rows, SAMPLER))
            live = center_vectors(model, batcher, node_type, rows, SAMPLER, None, block, tokens)
            from_stored = center_vectors(model, batcher, node_type, rows, SAMPLER, stored, block, tokens)
            torch.testing.assert_close(live, expected, rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(from_stored, expected, rtol=1e-4, atol=1e-5)


def test_stored_states_are_what_is_used() -> None:
    batcher = Batcher(VisibleNetwork.whole(tiny_network()), tiny_tokens())
    model, rows = tiny_model(), np.arange(20)
    stored = states_of(model, batcher, more=1.0)
    live = center_vectors(model, batcher, "paper", rows, SAMPLER)
    assert not torch.allclose(center_vectors(model, batcher, "paper", rows, SAMPLER, stored), live)


def test_a_node_has_the_same_vector_in_whatever_company() -> None:
    batcher = Batcher(VisibleNetwork.whole(tiny_network()), tiny_tokens())
    model = tiny_model()
    together = center_vectors(model, batcher, "paper", np.arange(60), SAMPLER)
    for rows in (np.array([7]), np.array([59, 0, 59]), np.arange(30, 60)):
        torch.testing.assert_close(center_vectors(model, batcher, "paper", rows, SAMPLER), together[rows])


@pytest.mark.parametrize("readout", ["cls", "mean"])
@pytest.mark.parametrize("tokens_per_batch", [1, 40, 8192])
def test_plm_vectors_are_the_plms(readout: str, tokens_per_batch: int) -> None:
    plm = AutoModel.from_pretrained(tiny_reader()).eval()
    numbers = np.array([5, 3, 199, 0, 3])
    vectors = plm_vectors(tiny_model(readout=readout), tiny_tokens(), numbers, tokens_per_batch)
    for number, vector in zip(numbers, vectors, strict=True):
        start, stop = tiny_tokens().offsets[number : number + 2]
        ids = torch.from_numpy(tiny_tokens().tokens[start:stop].astype(np.int64))
        with torch.no_grad():
            hidden = plm(input_ids=ids[None]).last_hidden_state[0]
        torch.testing.assert_close(vector, hidden[0] if readout == "cls" else hidden.mean(0))


def test_plm_vectors_know_nothing_of_the_network() -> None:
    model = tiny_model()
    before = plm_vectors(model, tiny_tokens(), np.arange(9))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if not name.startswith("backbone."):
                parameter.add_(1)
    assert torch.equal(plm_vectors(model, tiny_tokens(), np.arange(9)), before)


@few
@given(st.lists(st.integers(0, 199), max_size=40), st.integers(1, 50))
def test_each_text_is_read_once_and_answered_in_its_place(numbers: list[int], tokens: int) -> None:
    read: list[tuple[int, int]] = []

    def sums(texts: Any) -> Tensor:
        read.append((texts.tokens.numel(), len(texts)))
        values = [part.sum() for part in texts.tokens.split(texts.lengths.tolist())]
        return torch.stack(values)[:, None] if values else torch.empty(0, 1)

    wanted = np.array(numbers, dtype=np.int64)
    rows = each_text(sums, tiny_tokens(), wanted, torch.device("cpu"), tokens)
    parts = [tiny_tokens().tokens[slice(*tiny_tokens().offsets[n : n + 2])] for n in numbers]
    assert rows.tolist() == [[float(part.sum())] for part in parts]
    assert sum(count for count, _ in read) == sum(map(len, parts))
    assert all(count <= tokens or texts == 1 for count, texts in read)


def test_whoever_waits_is_told_after_every_batch() -> None:
    told: list[int] = []
    rows, device = np.arange(40), torch.device("cpu")
    each_text(lambda texts: texts.offsets[1:, None].float(), tiny_tokens(), rows, device, 50, told.append)
    assert len(told) > 4
    assert sum(told) == 40


@pytest.mark.parametrize("training", [True, False])
def test_evaluating_is_without_dropout_and_gradients_and_ends(training: bool) -> None:
    model = tiny_model().train(training)
    with evaluating(model):
        assert not model.training
        assert not torch.is_grad_enabled()
    assert model.training is training
    with pytest.raises(KeyError), evaluating(model):
        raise KeyError
    assert model.training is training
    assert torch.is_grad_enabled()


def test_vectors_do_not_depend_on_the_mode_the_model_is_in() -> None:
    batcher = Batcher(VisibleNetwork.whole(tiny_network()), tiny_tokens())
    vectors = [
        center_vectors(tiny_model().train(mode), batcher, "paper", np.arange(9), SAMPLER)
        for mode in (True, False)
    ]
    assert torch.equal(*vectors)
