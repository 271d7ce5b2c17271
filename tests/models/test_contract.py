"""What all twelve models promise, whatever they are: one suite for every name of the registry."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import AutoModel

from heterformer.batches.batch import Batch, Neighbors, Texts
from heterformer.batches.batcher import Batcher
from heterformer.batches.sampling import SeededSampler
from heterformer.batches.visible import VisibleNetwork
from heterformer.errors import InputError
from heterformer.models.backbone_encoder import BackboneEncoder
from heterformer.models.contract import NodeEncoder
from heterformer.models.heterogeneous import HeterogeneousEncoder
from heterformer.models.inference import center_vectors
from heterformer.models.options import MODEL_OPTIONS, BackboneOptions, TextlessOptions
from heterformer.models.plm.layouts import LAYOUTS
from heterformer.models.registry import MODELS, load_model
from heterformer.network.schema import EdgeType
from heterformer.states.text_states import stored_states
from tests.learning import tiny_network, tiny_reader, tiny_tokens
from tests.models.random_batches import VOCABULARY, new_model, random_batch, save_backbone, schema

HOMOGENEOUS = ("mean_sage", "bert", "bert_mean_sage", "bert_max_sage", "bert_gat", "graph_formers")
STATES = {
    "bert": 0,
    "heterformer": 3,
    "graph_formers": 2,
    "graph_formers_plus": 2,
}  # others: 1; Heterformer with its readout
# Where from_backbone alone leaves out what training has by default.
FORMS: dict[str, dict[str, Any]] = {"heterformer": {"network_readout": "both", "second_hop": 4}}
LAYERS = 3
READERS = [name for name, options in MODEL_OPTIONS.items() if issubclass(options, BackboneOptions)]
# Every model on BERT; a nested one with textless nodes, one without, and a cascaded one on other layouts.
OTHERS = ("heterformer", "graph_formers", "bert_hgt")
CASES = [(name, "bert") for name in MODELS] + [(name, family) for family in LAYOUTS for name in OTHERS]
# What a layout could break is tested for every model that reads texts by its backbone.
on_every_layout = pytest.mark.parametrize(
    "case", [("mean_sage", "bert"), *itertools.product(READERS, ("bert", *LAYOUTS))], ids="-".join
)

Make = Callable[..., NodeEncoder]


@pytest.fixture(scope="module")
def backbones(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("backbones")
    return {family: save_backbone(folder / family, family, LAYERS) for family in ("bert", *LAYOUTS)}


@pytest.fixture(params=CASES, ids="-".join)
def case(request: pytest.FixtureRequest) -> tuple[str, str]:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def name(case: tuple[str, str]) -> str:
    return case[0]


@pytest.fixture
def make(case: tuple[str, str], backbones: dict[str, str]) -> Make:
    name, family = case
    return lambda **options: new_model(name, backbones[family], **{**FORMS.get(name, {}), **options})


def full_batch() -> Batch:
    """A batch in which every edge type occurs; the last centre has no neighbours."""
    batch = random_batch(3, centers=12, second_hops=True)
    assert all(len(edges.center) for edges in batch.neighbors.values())
    return batch


def states_of(model: NodeEncoder, batch: Batch) -> Tensor:
    return model.text_states(batch.texts.first(batch.neighbor_texts))


def gradients_of(model: NodeEncoder, value: Tensor) -> list[Tensor | None]:
    model.zero_grad()
    value.backward()  # type: ignore[no-untyped-call]
    return [None if p.grad is None else p.grad.to_dense().clone() for p in model.parameters()]


def mapped(batch: Batch, change: Callable[[EdgeType, Neighbors], Neighbors]) -> Batch:
    return replace(batch, neighbors={r: change(r, edges) for r, edges in batch.neighbors.items()})


def assert_close(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, atol=1e-12, rtol=0)


def test_all_models_but_one_read_texts_by_a_backbone() -> None:
    assert {*MODELS} - {*READERS} == {"mean_sage"}


class TestModelContract:
    @on_every_layout
    def test_shapes(self, make: Make, name: str) -> None:
        model, batch = make(), full_batch()
        assert model.text_states(batch.texts).shape == (9, STATES.get(name, 1), 32)
        assert model.text_states(batch.texts.first(0)).shape == (0, STATES.get(name, 1), 32)
        assert model.states_per_text == STATES.get(name, 1)
        vectors = model.encode_batch(batch)
        assert vectors.shape == (12, 32)
        assert vectors.isfinite().all()
        assert len(vectors.unique(dim=0)) >= len(batch.centers.unique())

    @on_every_layout
    def test_gradients_reach_every_parameter(self, make: Make) -> None:
        model = make()
        vectors = model.encode_batch(full_batch())
        (vectors * torch.randn(vectors.shape, generator=torch.Generator().manual_seed(0))).sum().backward()
        for parameter_name, parameter in model.named_parameters():
            if parameter_name.endswith(("key.bias", "attn.k.bias", "k_lin.bias")):
                continue  # adds the same to all scores of a query, which the softmax does not see
            assert parameter.grad is not None, parameter_name
            assert parameter.grad.to_dense().abs().max() > 0, parameter_name

    @on_every_layout
    def test_neighbours_texts_learn(self, make: Make, name: str) -> None:
        """End to end: training has the gradients of both passes, and those reach into the first one."""
        model, batch = make().double(), full_batch()
        weights = torch.randn(12, 32, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        states = states_of(model, batch)
        if name != "bert":  # which has no neighbours, and so no states
            (into,) = torch.autograd.grad((model(batch, states) * weights).sum(), states)
            assert (into.flatten(1).abs().amax(1) > 0).any()
            assert any(p is not None for p in gradients_of(model, states.sum()))
        for found, expected in zip(
            gradients_of(model, (model.encode_batch(batch) * weights).sum()),
            gradients_of(model, (model(batch, states_of(model, batch)) * weights).sum()),
            strict=True,
        ):
            torch.testing.assert_close(found, expected, atol=1e-9, rtol=1e-9)

    @on_every_layout
    def test_two_passes_equal_one(self, make: Make) -> None:
        model, batch = make().double(), full_batch()
        assert_close(model(batch, states_of(model, batch)), model.encode_batch(batch))

    def test_the_order_of_centres_does_not_matter(self, make: Make) -> None:
        model, batch = make().double(), full_batch()
        order = torch.randperm(12, generator=torch.Generator().manual_seed(0))
        place = torch.argsort(order)

        def moved(_: EdgeType, edges: Neighbors) -> Neighbors:
            center, index = place[edges.center].sort(stable=True)
            return Neighbors(center, edges.node[index])

        shuffled = replace(mapped(batch, moved), centers=batch.centers[order])
        assert_close(model.encode_batch(shuffled), model.encode_batch(batch)[order])

    def test_company_does_not_matter(self, make: Make) -> None:
        model, batch = make().double(), full_batch()
        states, together = states_of(model, batch), model.encode_batch(batch)
        for i, vector in enumerate(together):

            def own(_: EdgeType, edges: Neighbors, i: int = i) -> Neighbors:
                mine = edges.center == i
                return Neighbors(edges.center[mine] * 0, edges.node[mine])

            alone = replace(mapped(batch, own), centers=batch.centers[i : i + 1])
            assert_close(model(alone, states)[0], vector)
            met = {r: edges for r, edges in alone.neighbors.items() if len(edges.center)}
            assert_close(model(replace(alone, neighbors=met), states)[0], vector)

    def test_the_order_of_neighbours_does_not_matter(self, make: Make) -> None:
        model, batch = make().double(), full_batch()

        def backwards(_: EdgeType, edges: Neighbors) -> Neighbors:
            center, index = edges.center.flip(0).sort(stable=True)
            return Neighbors(center, edges.node.flip(0)[index])

        turned = mapped(batch, backwards)
        assert any((turned.neighbors[r].node != edges.node).any() for r, edges in batch.neighbors.items())
        turned = replace(turned, neighbors=dict(reversed(turned.neighbors.items())))
        assert_close(model.encode_batch(turned), model.encode_batch(batch))

    def test_padding_does_not_matter(self, make: Make) -> None:
        """Longer texts, more neighbours and further textless nodes widen rectangles, and nothing else."""
        model, batch = make().double(), full_batch()
        tokens = torch.randint(2, VOCABULARY, (12,), generator=torch.Generator().manual_seed(1))
        offsets = torch.cat([batch.texts.offsets, batch.texts.offsets[-1:] + 12])

        def crowded(_: EdgeType, edges: Neighbors) -> Neighbors:
            nodes = torch.zeros(20, dtype=torch.int64)
            return Neighbors(torch.cat([edges.center, nodes + 12]), torch.cat([edges.node, nodes]))

        wider = replace(
            mapped(batch, crowded),
            texts=Texts(torch.cat([batch.texts.tokens, tokens]), offsets),
            centers=torch.cat([batch.centers, torch.tensor([9])]),
            textless={t: torch.cat([rows, torch.tensor([1])]) for t, rows in batch.textless.items()},
        )
        assert_close(model.encode_batch(wider)[:12], model.encode_batch(batch))

    def test_the_order_of_texts_does_not_matter(self, make: Make) -> None:
        model, texts = make().double(), full_batch().texts
        order = torch.randperm(len(texts), generator=torch.Generator().manual_seed(0))
        assert_close(model.text_states(texts.select(order)), model.text_states(texts)[order])

    def test_neighbours_matter(self, make: Make, name: str) -> None:
        model, batch = make(), full_batch()
        others = mapped(
            batch, lambda r, n: Neighbors(n.center, (n.node + 1) % (2 if r.neighbor == "venue" else 5))
        )
        changed = not torch.allclose(model.encode_batch(others), model.encode_batch(batch), atol=1e-4)
        assert changed is (name != "bert")

    def test_homogeneous_models_ignore_textless_nodes(self, make: Make, name: str) -> None:
        model, batch = make(), full_batch()
        near, far = (
            {r: n for r, n in edges.items() if r.neighbor in schema().text_rich}
            for edges in (batch.neighbors, batch.second_hop)
        )
        without = model.encode_batch(replace(batch, neighbors=near, second_hop=far, textless={}))
        assert torch.equal(without, model.encode_batch(batch)) is (name in HOMOGENEOUS)
        tables = [p for p in model.parameters() if p.shape[0] == schema().counts["author"]]
        assert len(tables) == (name not in HOMOGENEOUS)

    def test_homogeneous_models_ignore_edge_types(self, make: Make, name: str) -> None:
        model, batch = make().double(), full_batch()
        cites, cited_by, *_ = schema().edge_types
        swapped = {cites: batch.neighbors[cited_by], cited_by: batch.neighbors[cites]}
        found = model.encode_batch(replace(batch, neighbors=batch.neighbors | swapped))
        assert torch.allclose(found, model.encode_batch(batch), atol=1e-9) is (name in HOMOGENEOUS)

    def test_vectors_of_textless_nodes(self, make: Make, name: str) -> None:
        model, rows = make(), torch.tensor([3, 0, 3])
        if name in HOMOGENEOUS:
            with pytest.raises(InputError, match="has no vectors of 'author' nodes") as caught:
                model.textless_vectors("author", rows)
            assert "\n" not in str(caught.value)
        else:
            vectors = model.textless_vectors("author", rows)
            assert vectors.shape == (3, 32)
            assert torch.equal(vectors[0], vectors[2])
            assert not torch.allclose(vectors[0], vectors[1])

    def test_a_batch_can_carry_textless_embeddings(self, make: Make, name: str) -> None:
        model: Any = make()
        assert isinstance(model, HeterogeneousEncoder) == (name not in HOMOGENEOUS)
        if name in HOMOGENEOUS:
            return
        batch = random_batch(3)
        rows = batch.textless
        carried = {t: model.textless.embeddings(t, r).detach().clone() for t, r in rows.items()}
        other = {t: torch.zeros_like(r) for t, r in rows.items()}  # which rows they are does not matter then
        with torch.no_grad():
            expected = model.encode_batch(batch)
            found = model.encode_batch(replace(batch, textless=other, textless_embeddings=carried))
            assert torch.equal(found, expected)
            changed = {t: h0 + 1 for t, h0 in carried.items()}
            found = model.encode_batch(replace(batch, textless_embeddings=changed))
            assert not torch.allclose(found, expected)

    def test_textless_tables_train_sparsely(self, make: Make, name: str) -> None:
        model, batch = make(), full_batch()
        model.encode_batch(batch).sum().backward()
        tables = model.parameter_groups()["textless"]
        assert len(tables) == (1 if name == "mean_sage" else 2 * (name not in HOMOGENEOUS))
        assert all(table.grad is not None and table.grad.is_sparse for table in tables)
        if name not in HOMOGENEOUS:
            used = tables[0].grad.coalesce().indices().flatten().tolist()  # type: ignore[union-attr]
            assert used == sorted(batch.textless["author"].tolist())

    def test_a_centre_without_neighbours(self, make: Make) -> None:
        model, batch = make().double(), full_batch()
        alone = replace(batch, neighbors={}, second_hop={}, textless={}, neighbor_texts=0)
        assert_close(model.encode_batch(alone)[-1], model.encode_batch(batch)[-1])

    def test_one_text_alone(self, make: Make) -> None:
        """A search query: a text of no known node."""
        tokens = torch.randint(2, VOCABULARY, (4,), generator=torch.Generator().manual_seed(0))
        batch = Batch(Texts(tokens, torch.tensor([0, 4])), 0, torch.tensor([0]), {}, {})
        vector = make().encode_batch(batch)
        assert vector.shape == (1, 32)
        assert vector.abs().max() > 0

    def test_save_and_load_give_equal_bits(self, make: Make, tmp_path: Path) -> None:
        model, batch = make(), full_batch()
        model.save_pretrained(tmp_path)
        assert {f.suffix for f in tmp_path.iterdir()} == {".json", ".safetensors"}
        for loaded in (load_model(tmp_path), AutoModel.from_pretrained(tmp_path)):
            assert type(loaded) is type(model)
            assert loaded.schema == schema()
            for option in model.config.option_names():
                assert getattr(loaded.config, option) == getattr(model.config, option)
            assert torch.equal(loaded.encode_batch(batch), model.encode_batch(batch))
            for key, value in model.state_dict().items():
                assert torch.equal(loaded.state_dict()[key], value), key

    def test_normalised_vectors_and_scores(self, make: Make) -> None:
        model, batch = make(normalize=True, temperature=0.5), full_batch()
        vectors = model.encode_batch(batch)
        torch.testing.assert_close(vectors.norm(dim=1), torch.ones(12))
        plain = make().encode_batch(batch)
        torch.testing.assert_close(vectors, torch.nn.functional.normalize(plain, dim=1))
        torch.testing.assert_close(model.scores(vectors, vectors), 2 * vectors @ vectors.T)

    def test_runs_under_autocast(self, make: Make) -> None:
        model, batch = make(), full_batch()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            vectors = model.encode_batch(batch)
        torch.testing.assert_close(vectors.float(), model.encode_batch(batch), atol=0.2, rtol=0.1)
        vectors.float().sum().backward()

    def test_parameter_groups_hold_every_parameter_once(self, make: Make, name: str) -> None:
        model = make()
        groups = model.parameter_groups()
        assert list(groups) == ["backbone", "new", "textless"]
        plm = [] if name == "mean_sage" else list(model.backbone.parameters())
        assert {id(p) for p in groups["backbone"]} == {id(p) for p in plm}
        everything = [id(p) for group in groups.values() for p in group]
        assert sorted(everything) == sorted(id(p) for p in model.parameters())

    def test_a_model_has_the_options_of_what_it_consists_of(self, make: Make, name: str) -> None:
        model, options = make(), MODEL_OPTIONS[name]
        assert isinstance(model, BackboneEncoder) is issubclass(options, BackboneOptions)
        assert isinstance(model, HeterogeneousEncoder) is issubclass(options, TextlessOptions)

    def test_unknown_options_are_named(self, make: Make, name: str) -> None:
        with pytest.raises(InputError) as caught:
            make(temperatur=3)
        hint = "(did you mean 'temperature'?)"
        assert str(caught.value) == f"{MODELS[name].__name__} has no option 'temperatur' {hint}."

    @pytest.mark.parametrize("name", MODELS)
    def test_embedding_a_network_equals_single_forward(self, name: str) -> None:
        torch.manual_seed(0)
        model: Any = MODELS[name].from_backbone(tiny_reader(), tiny_network())
        model.prepare(tiny_tokens(), special_tokens=(0, 1, 2, 3))
        batcher, rows = Batcher(VisibleNetwork.whole(tiny_network()), tiny_tokens()), np.arange(30)
        sampler = SeededSampler(np.uint64(3))
        with torch.no_grad():
            expected = model.encode_batch(batcher.nodes("paper", rows, sampler))
        with stored_states(model, tiny_tokens()) as states:
            found = center_vectors(model, batcher, "paper", rows, sampler, states)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
        live = center_vectors(model, batcher, "paper", rows, sampler)
        torch.testing.assert_close(live, expected, rtol=1e-4, atol=1e-5)
