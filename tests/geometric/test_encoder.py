"""A model in front of a module of PyTorch Geometric."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.data import HeteroData
from torch_geometric.nn import HeteroConv, SAGEConv
from transformers import AutoTokenizer

from heterformer.errors import InputError
from heterformer.geometric.encoder import HeteroTextEncoder
from heterformer.geometric.loader import LinkLoader
from heterformer.models.registry import MODELS
from tests.learning import tiny_model, tiny_network, tiny_reader


def encoder(seed: int = 0) -> HeteroTextEncoder:
    model = tiny_model(seed)
    return HeteroTextEncoder(model, tiny_network(), AutoTokenizer.from_pretrained(tiny_reader()))


def test_features_are_the_models_vectors_without_neighbors() -> None:
    made = encoder()
    batch = next(iter(LinkLoader(tiny_network(), batch_size=4)))
    with torch.no_grad():
        x = made(batch)
    assert {t: len(v) for t, v in x.items()} == {t: batch[t].num_nodes for t in batch.node_types}
    texts = tiny_network().texts("paper", batch["paper"].n_id.tolist())
    tokenizer = AutoTokenizer.from_pretrained(tiny_reader())
    np.testing.assert_allclose(x["paper"], made.model.encode(texts, tokenizer=tokenizer), atol=1e-5)
    expected = made.model.textless_vectors("author", batch["author"].n_id)
    assert torch.equal(x["author"], expected.detach())


def test_a_module_behind_it_teaches_the_model() -> None:
    made = encoder().train()
    loader = LinkLoader(tiny_network(), batch_size=8)
    batch = next(iter(loader))
    convolution = HeteroConv({e: SAGEConv((16, 16), 16) for e in batch.edge_types if e[2] == "paper"})
    optimizer = torch.optim.Adam([*made.parameters(), *convolution.parameters()], lr=3e-3)
    losses = []
    for _ in range(6):
        vectors = convolution(made(batch), batch.edge_index_dict)["paper"]
        queries, keys = vectors[batch["paper", "cites", "paper"].edge_label_index]
        scores = (queries @ keys.T).masked_fill(batch.false_negatives, float("-inf"))
        loss = torch.nn.functional.cross_entropy(scores, torch.arange(len(scores)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    assert made.model.backbone.embeddings.word_embeddings.weight.grad.abs().sum() > 0


def test_a_whole_network_and_types_that_a_model_does_not_know() -> None:
    model = MODELS["bert"].from_backbone(tiny_reader(), tiny_network())
    made = HeteroTextEncoder(model, tiny_network(), AutoTokenizer.from_pretrained(tiny_reader()))
    with torch.no_grad():
        x = made(tiny_network().to_hetero_data())
    assert {t: tuple(v.shape) for t, v in x.items()} == {"paper": (200, 16)}


def test_rows_that_the_network_does_not_have() -> None:
    data = HeteroData()
    data["paper"].n_id = torch.tensor([3, 200])
    with pytest.raises(InputError, match="has paper rows up to 200, expected 0 to 199"):
        encoder()(data)
    data["paper"].n_id = torch.empty(0, dtype=torch.int64)
    assert encoder()(data)["paper"].shape == (0, 16)
