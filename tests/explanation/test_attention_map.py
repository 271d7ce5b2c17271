"""The attention laid open is the attention that the model used."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from heterformer.batches.batch import Batch, Neighbors
from heterformer.explanation import attention_map as module
from heterformer.explanation.attention_map import AttentionMap, Edge, attention_map
from heterformer.models import Heterformer
from heterformer.models.plm import attention
from heterformer.models.plm.rectangles import Rectangle
from tests.models.random_batches import FAMILIES, random_batch, save_backbone, schema
from tests.reference import reference_vectors

OPTIONS: list[dict[str, Any]] = [
    {},
    {"virtual_tokens": "text_rich"},
    {"virtual_tokens": "textless"},
    {"virtual_tokens": "none"},
    {"network_readout": "both"},
    {"network_readout": "both", "readout_aggregation": "attention"},
    {"network_readout": "both", "readout": "mean", "normalize": True},
    {"network_readout": "textless", "virtual_tokens": "none"},
    {"network_readout": "both", "second_hop": 4},
    {"network_readout": "both", "neighbor_codes": True},
    {"network_readout": "both", "second_hop": 4, "neighbor_codes": True, "normalize": True},
    {"heterogeneous_projection": False},
    {"share_aggregation_layers": True, "share_aggregation_kinds": True},
    {"readout": "mean"},
    {"neighbor_pooling": "mean"},
    {"readout": "mean", "neighbor_pooling": "mean", "normalize": True, "temperature": 0.05},
    {"aggregation_heads": 2, "textless_dim": 7},
    {"aggregation_init": "identity"},
]
KINDS = {"both": ["text_rich", "textless"], "text_rich": ["text_rich"], "textless": ["textless"], "none": []}


@pytest.fixture(scope="module")
def backbones(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("backbones")
    return {family: save_backbone(folder / family, family) for family in FAMILIES}


def new_model(backbone: str, **options: Any) -> Heterformer:
    torch.manual_seed(1)
    return Heterformer.from_backbone(backbone, schema(), **{"aggregation_init": "random", **options})


def alone(batch: Batch, i: int) -> Batch:
    """Centre ``i`` of a batch in a batch of its own."""
    neighbors = {}
    for r, n in batch.neighbors.items():
        mine = n.center == i
        neighbors[r] = Neighbors(torch.zeros_like(n.center[mine]), n.node[mine])
    return replace(batch, centers=batch.centers[i : i + 1], neighbors=neighbors)


def centers(seed: int) -> list[Batch]:
    """Papers and reviews; the last one has no neighbours, the first a text of one token."""
    batch = random_batch(seed, second_hops=True)
    return [alone(batch, i) for i in range(len(batch.centers))]


def paper() -> Batch:
    """A paper of 12 tokens with several neighbours of each kind, under several edge types."""
    return alone(random_batch(3, edge_probability=1.0), 1)


def check(model: Heterformer, batch: Batch) -> AttentionMap:
    """The vector is the model's, and everything that is called a share adds up."""
    found = attention_map(model, batch)
    states = model.text_states(batch.texts.first(batch.neighbor_texts))
    torch.testing.assert_close(found.vector, model(batch, states)[0], atol=1e-5, rtol=0)
    kinds = KINDS[model.config.virtual_tokens]
    n = int(batch.texts.lengths[batch.centers[0]])
    assert [list(layer.alpha) for layer in found.layers] == [[], kinds, kinds]
    for layer in found.layers:
        assert layer.probabilities.shape[-1] == len(layer.alpha) + n
        for queries in ("cls", "all"):
            assert float(layer.attention(queries).sum()) == pytest.approx(1, abs=1e-5)
        assert torch.allclose(layer.probabilities.sum(-1), torch.ones(1), atol=1e-5)
        for kind in layer.alpha:
            assert layer.shares(kind).shape == (1 + len(found.neighbors[kind]),)
            assert float(layer.shares(kind).sum()) == pytest.approx(1, abs=1e-5)
    assert list(found.readout) == KINDS[model.config.network_readout]
    for kind, part in found.readout.items():
        assert part.shares.shape == (1 + len(found.neighbors[kind]),)
        has_share = found.neighbors[kind] or model.config.readout_aggregation == "attention"
        assert float(part.shares.sum()) == pytest.approx(1 if has_share else 0, abs=1e-5)
    return found


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_vector_is_the_models_in_every_ablation(
    backbones: dict[str, str], options: dict[str, Any]
) -> None:
    model = new_model(backbones["bert"], **options)
    for seed in range(2):
        for batch in centers(seed):
            check(model, batch)


@pytest.mark.parametrize("family", [family for family in FAMILIES if family != "bert"])
def test_the_vector_is_the_models_in_every_family(backbones: dict[str, str], family: str) -> None:
    for batch in centers(3):
        check(new_model(backbones[family]), batch)


@pytest.mark.parametrize("layers", [1, 2])
def test_few_layers(tmp_path: Path, layers: int) -> None:
    model, batch = new_model(save_backbone(tmp_path, layers=layers)), paper()
    found = attention_map(model, batch)
    torch.testing.assert_close(found.vector, reference_vectors(model, batch)[0], atol=1e-5, rtol=0)
    assert [len(layer.alpha) for layer in found.layers] == [0, 2][:layers]


@pytest.mark.parametrize("readout", ["cls", "mean"])
def test_probabilities_are_those_of_the_fast_path(
    backbones: dict[str, str], monkeypatch: pytest.MonkeyPatch, readout: str
) -> None:
    model, batch = new_model(backbones["bert"], readout=readout), paper()
    states = model.text_states(batch.texts.first(batch.neighbor_texts))
    used: list[Tensor] = []
    weights = attention._weights

    def spied(q: Tensor, k: Tensor, positions: attention.Positions, piece: Rectangle) -> Tensor:
        used.append(weights(q, k, positions, piece))  # (H, n, n + V): virtual tokens last
        return used[-1]

    monkeypatch.setattr(attention, "_weights", spied)
    model(batch, states)
    monkeypatch.undo()
    found = attention_map(model, batch)
    # With readout cls the fast path asks in the last layer with [CLS] alone, by other means.
    assert len(used) == (2 if readout == "cls" else 3)
    for layer, expected in zip(found.layers, used, strict=False):
        virtual = len(layer.alpha)
        length = expected.shape[-1] - virtual
        expected = torch.cat([expected[..., length:], expected[..., :length]], -1)
        torch.testing.assert_close(layer.probabilities, expected, atol=1e-6, rtol=0)
    n = int(batch.texts.lengths[batch.centers[0]])
    assert [layer.probabilities.shape[1] for layer in found.layers] == [n, n, 1 if readout == "cls" else n]


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_alphas_make_the_virtual_tokens_that_the_model_made(
    backbones: dict[str, str], monkeypatch: pytest.MonkeyPatch, pooling: str
) -> None:
    model, batch = new_model(backbones["bert"], neighbor_pooling=pooling), paper()
    states = model.text_states(batch.texts.first(batch.neighbor_texts))
    made: list[tuple[str, int, Tensor, Tensor]] = []
    aggregate = model.aggregate

    def spied(kind: str, depth: int, center: Tensor, neighborhoods: Any) -> Tensor:
        token = aggregate(kind, depth, center, neighborhoods)
        entries = torch.cat([center, neighborhoods.messages_at(depth)])  # (1 + N, d)
        made.append((kind, depth, entries, token[0]))
        return token

    monkeypatch.setattr(model, "aggregate", spied)
    model(batch, states)
    monkeypatch.undo()
    found = attention_map(model, batch)
    assert [(kind, depth) for kind, depth, *_ in made] == [(k, d) for d in (1, 2) for k in KINDS["both"]]
    for kind, depth, entries, token in made:
        layer, weights = found.layers[depth], model.aggregations[f"{kind}_{depth}"]
        values = (entries @ weights.value.T).view(len(entries), weights.heads, -1)  # (1 + N, k, d/k)
        torch.testing.assert_close(layer.virtual[KINDS["both"].index(kind)], token, atol=1e-5, rtol=0)
        mixed = torch.stack([a @ values[:, t] for t, a in enumerate(layer.alpha[kind])])  # (k, d/k)
        torch.testing.assert_close(mixed.flatten(), token, atol=1e-5, rtol=0)
        assert layer.alpha[kind].shape[1] > 3, "several neighbours"


def test_neighbours_come_in_the_order_of_their_shares(backbones: dict[str, str]) -> None:
    """Without one of the neighbours, the others share as before, relative to each other."""
    model, batch = new_model(backbones["bert"]), paper()
    before = attention_map(model, batch)
    for kind in KINDS["both"]:
        edges = before.neighbors[kind]
        assert sorted(edges) == sorted(
            Edge(r, node)
            for r, n in batch.neighbors.items()
            for node in n.node.tolist()
            if r.neighbor in getattr(schema(), kind)
        )
        gone = edges[len(edges) // 2]
        place = batch.neighbors[gone.edge_type].node.tolist().index(gone.node)
        kept = torch.arange(len(batch.neighbors[gone.edge_type].node)) != place
        n = batch.neighbors[gone.edge_type]
        fewer = {**batch.neighbors, gone.edge_type: Neighbors(n.center[kept], n.node[kept])}
        after = attention_map(model, replace(batch, neighbors=fewer))
        rest = [0, *(1 + i for i, edge in enumerate(edges) if i != edges.index(gone))]
        alpha = before.layers[1].alpha[kind][:, rest]  # the first layer's state is the same still
        torch.testing.assert_close(
            after.layers[1].alpha[kind], alpha / alpha.sum(1, keepdim=True), atol=1e-5, rtol=0
        )


def test_the_mean_over_all_tokens_and_heads(backbones: dict[str, str]) -> None:
    layer = attention_map(new_model(backbones["bert"]), paper()).layers[1]
    heads, queries, keys = layer.probabilities.shape
    assert queries == 12
    every = [[float(layer.probabilities[h, q, 0]) for h in range(heads)] for q in range(queries)]
    assert float(layer.attention("cls")[0]) == pytest.approx(sum(every[0]) / heads, abs=1e-6)
    assert float(layer.attention("all")[0]) == pytest.approx(sum(map(sum, every)) / heads / queries, abs=1e-6)
    assert not torch.allclose(layer.attention("cls"), layer.attention("all"), atol=1e-3)
    assert keys == 14


def test_neither_dropout_nor_gradients(backbones: dict[str, str]) -> None:
    model, batch = new_model(backbones["bert"]), paper()
    expected = attention_map(model, batch).vector
    model.train()
    found = attention_map(model, batch).vector
    assert torch.equal(found, expected)
    assert not found.requires_grad
    assert model.training, "left as it was"


@pytest.mark.parametrize("mistake", ["heads", "scale", "order"])
def test_a_mistake_would_be_noticed(
    backbones: dict[str, str], monkeypatch: pytest.MonkeyPatch, mistake: str
) -> None:
    model, batch = new_model(backbones["bert"]), paper()
    by_head = module._by_head
    if mistake == "heads":
        monkeypatch.setattr(module, "_by_head", lambda x, heads: by_head(x, 1))
    elif mistake == "scale":
        monkeypatch.setattr(module, "_by_head", lambda x, heads: by_head(x, heads) * 1.01)
    else:
        monkeypatch.setattr(module, "_by_head", lambda x, heads: by_head(x.flip(-1), heads))
    with pytest.raises(AssertionError):
        check(model, batch)


def test_one_centre_at_a_time(backbones: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="the batch has 6 centres, expected one"):
        attention_map(new_model(backbones["bert"]), random_batch(0))
