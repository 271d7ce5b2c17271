"""Names as text: where textless nodes start."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from transformers import AutoTokenizer

from heterformer import Network
from heterformer.batches.visible import VisibleNetwork
from heterformer.models import Heterformer
from heterformer.models.inference import some_plm_vectors
from heterformer.models.known_nodes import KnownNodes
from heterformer.network.tokens import open_tokens
from heterformer.training.names import name_tokens, start_from_names
from tests.embedding.growing import SPEC, first_state
from tests.learning import WORDS, tiny_reader

NAMES = [" ".join(WORDS[10 + 3 * i : 12 + 3 * i]) for i in range(12)]


def named_network(**author: Any) -> Network:
    """A few papers by authors whose names are words that the reader knows."""
    titles = dict(list(first_state().titles.items())[:12])
    papers = pl.DataFrame({"id": [*titles], "title": [*titles.values()]})
    ids = [f"a{i}" for i in range(12)]
    spec = {**SPEC, "nodes": {"paper": {"text": "title"}, "author": {"name": "full", **author}}}
    spec["relations"] = {n: r for n, r in SPEC["relations"].items() if n != "published_in"}
    spec["neighbors"] = {"paper": 3, "author": 2}
    frames = {
        "cites": {"source": [*titles][1:], "target": [*titles][:-1]},
        "written_by": {"paper": [*titles][:8], "author": ids[:8]},
    }
    nodes = {"paper": papers, "author": {"id": ids, "full": NAMES}}
    return Network.from_frames(spec, nodes, frames)


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return AutoTokenizer.from_pretrained(tiny_reader())


def started(
    network: Network, tokenizer: Any, visible: VisibleNetwork | None = None, **options: Any
) -> Heterformer:
    torch.manual_seed(0)
    model = Heterformer.from_backbone(tiny_reader(), network, **options)
    visible = visible or VisibleNetwork.whole(network)
    known = KnownNodes.from_network(visible, open_tokens(network, tokenizer))
    start_from_names(model, visible, tokenizer, known)
    return model


def name_vectors(model: Heterformer, tokenizer: Any) -> torch.Tensor:
    return some_plm_vectors(model, name_tokens(NAMES, tokenizer, 16), np.arange(12))


def test_with_enough_numbers_a_node_starts_at_the_vector_of_its_name(tokenizer: Any) -> None:
    network = named_network(text_from="name")
    visible = VisibleNetwork.whole(network)
    model = started(network, tokenizer, visible, textless_dim=16)
    found = model.textless("author", torch.arange(12))
    torch.testing.assert_close(found, name_vectors(model, tokenizer), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("heterogeneous", [True, False])
def test_with_fewer_it_starts_as_close_as_can_be(tokenizer: Any, heterogeneous: bool) -> None:
    network = named_network(text_from="name")
    options: dict[str, Any] = {"textless_dim": 4, "heterogeneous_projection": heterogeneous}
    model = started(network, tokenizer, **options)
    vectors = name_vectors(model, tokenizer)
    error = (model.textless("author", torch.arange(8)) - vectors[:8]).square().sum()
    singular = torch.linalg.svdvals(vectors[:8])
    torch.testing.assert_close(error, singular[4:].square().sum(), rtol=1e-3, atol=1e-4)


def test_a_wider_embedding_than_the_plm(tokenizer: Any) -> None:
    model = started(named_network(text_from="name"), tokenizer, textless_dim=20)
    found = model.textless("author", torch.arange(12))
    torch.testing.assert_close(found, name_vectors(model, tokenizer), rtol=1e-4, atol=1e-4)


def test_names_that_training_must_not_see_do_not_decide_the_directions(tokenizer: Any) -> None:
    network = named_network(text_from="name")
    every = np.empty((0, 2), dtype=np.int64)
    hiding = VisibleNetwork(network, every, {"author": np.arange(4, 12)})
    model = started(network, tokenizer, hiding, textless_dim=4)
    vectors = name_vectors(model, tokenizer)
    torch.testing.assert_close(
        model.textless("author", torch.arange(4)), vectors[:4], rtol=1e-3, atol=1e-3
    )  # four numbers are enough for four names


def test_without_text_from_nothing_starts_there(tokenizer: Any) -> None:
    network = named_network()
    torch.manual_seed(0)
    before = Heterformer.from_backbone(tiny_reader(), network)
    after = started(network, tokenizer)
    assert all(torch.equal(a, b) for a, b in zip(before.parameters(), after.parameters(), strict=True))
