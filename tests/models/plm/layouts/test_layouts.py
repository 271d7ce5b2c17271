"""Every layout is the PLM itself: Transformers' own forward, with random sizes and lengths."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from heterformer.batches.batch import Texts
from heterformer.models.plm.backbone import load_backbone
from heterformer.models.plm.layouts import LAYOUTS, layout_class, layout_of
from heterformer.models.plm.packing import pack
from tests.models.random_batches import FAMILIES, VOCABULARY, random_batch, save_backbone

SIZES: list[dict[str, Any]] = [
    {},
    {"layers": 1, "hidden_size": 24, "num_attention_heads": 2, "intermediate_size": 40},
    {"layers": 5, "hidden_size": 40, "num_attention_heads": 5, "intermediate_size": 16},
]
LONGER = {"max_position_embeddings": 302}
MODERN_BERTS: list[dict[str, Any]] = [
    {"attention_bias": True, "mlp_bias": True, "norm_bias": True},
    {"local_attention": 2, "global_attn_every_n_layers": 3},
    {"local_attention": 128, "hidden_activation": "silu", "global_rope_theta": 50.0, "local_rope_theta": 9.0},
]


@pytest.fixture(params=FAMILIES)
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def token_states(plm: Any, texts: Texts) -> tuple[list[Tensor], Tensor]:
    """Each text's last states, and [CLS] alone as the last layer gives it."""
    packing = pack(texts)
    layout = layout_of(plm, packing)
    hidden = layout.embed()
    last = len(layout.layers) - 1
    for depth in range(last):
        hidden = layout.run_layer(depth, hidden)
    first = layout.run_layer(last, hidden, first_only=True)[packing.rank]
    parts = layout.run_layer(last, hidden).split(packing.texts.lengths.tolist())
    return [parts[i] for i in packing.rank.tolist()], first


def plm_states(plm: Any, texts: Texts) -> list[Tensor]:
    rows = texts.tokens.split(texts.lengths.tolist())
    return [plm(input_ids=row[None]).last_hidden_state[0] for row in rows]


def assert_equals_plm(plm: Any, texts: Texts) -> None:
    """Forward in single precision, gradients in double: sums over many tokens round."""
    found, first = token_states(plm, texts)
    for u, states in enumerate(plm_states(plm, texts)):
        torch.testing.assert_close(found[u], states, atol=1e-5, rtol=0)
        torch.testing.assert_close(first[u], states[0], atol=1e-5, rtol=0)
    plm = copy.deepcopy(plm).double()
    expected = gradients(plm, loss_of(plm_states(plm, texts)))
    for name, gradient in gradients(plm, loss_of(token_states(plm, texts)[0])).items():
        torch.testing.assert_close(
            gradient, expected[name], atol=1e-5, rtol=1e-5, msg=lambda m, n=name: n + m
        )


def loss_of(states: list[Tensor]) -> Tensor:
    weights = torch.randn(states[0].shape[1], generator=torch.Generator().manual_seed(0)).double()
    return (torch.cat(states) @ weights).sin().sum()


def gradients(plm: Any, loss: Tensor) -> dict[str, Tensor]:
    plm.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    return {n: torch.zeros_like(p) if p.grad is None else p.grad.clone() for n, p in plm.named_parameters()}


def long_texts() -> Texts:
    lengths = torch.tensor([300, 3, 150, 31, 300])
    tokens = torch.randint(2, VOCABULARY, (int(lengths.sum()),), generator=torch.Generator().manual_seed(1))
    return Texts(tokens, torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)]))


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_equals_transformers(tmp_path: Path, family: str, sizes: dict[str, Any]) -> None:
    plm = load_backbone(save_backbone(tmp_path, family, **sizes))
    for seed in range(2):
        assert_equals_plm(plm, random_batch(seed).texts)


def test_equals_transformers_on_long_texts(tmp_path: Path, family: str) -> None:
    """Relative positions share buckets, windows are shorter than texts, weights are computed twice."""
    plm = load_backbone(save_backbone(tmp_path, family, **LONGER))
    assert_equals_plm(plm, long_texts())


@pytest.mark.parametrize("options", MODERN_BERTS, ids=str)
def test_modernberts_options(tmp_path: Path, options: dict[str, Any]) -> None:
    plm = load_backbone(save_backbone(tmp_path, "modernbert", layers=4, **LONGER, **options))
    assert plm.config.layer_types.count("sliding_attention") >= 2
    assert_equals_plm(plm, long_texts())
    assert_equals_plm(plm, random_batch(2).texts)


def test_no_texts(tmp_path: Path, family: str) -> None:
    plm = load_backbone(save_backbone(tmp_path, family))
    packing = pack(Texts(torch.empty(0, dtype=torch.int64), torch.zeros(1, dtype=torch.int64)))
    layout = layout_of(plm, packing)
    for first_only in (False, True):
        hidden = layout.run_layer(1, layout.embed(), first_only=first_only)
        assert hidden.shape == (0, 32)
        hidden.sum().backward()


def test_dropout_is_the_training_models_alone(tmp_path: Path, family: str) -> None:
    rates = {"modernbert": ("attention_dropout", "embedding_dropout", "mlp_dropout")}.get(family, ())
    plm = load_backbone(save_backbone(tmp_path, family, **dict.fromkeys(rates, 0.3)))
    texts = random_batch(0).texts
    expected, _ = token_states(plm.eval(), texts)
    torch.manual_seed(0)
    trained = torch.stack([torch.cat(token_states(plm.train(), texts)[0]) for _ in range(2)])
    assert not torch.allclose(trained[0], torch.cat(expected), atol=1e-2)
    assert not torch.allclose(trained[0], trained[1], atol=1e-2)
    torch.cat(token_states(plm, texts)[0]).sum().backward()
    torch.testing.assert_close(torch.cat(token_states(plm.eval(), texts)[0]), torch.cat(expected))


def test_every_layout_has_a_family_here() -> None:
    assert {*LAYOUTS} < {*FAMILIES}
    for name, (model, config, _) in FAMILIES.items():
        assert config.model_type == model.config_class.model_type == name
    assert len({layout_class(m) for m in map(_Typed, FAMILIES)}) == 1 + len(LAYOUTS)


class _Typed:
    def __init__(self, model_type: str) -> None:
        self.config = type("config", (), {"model_type": model_type})
