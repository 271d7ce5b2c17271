from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from heterformer.models import Heterformer
from heterformer.training.losses import link_prediction_loss
from heterformer.training.optimizers import Optimizers, gates_of
from heterformer.training.options import TrainingOptions
from tests.models.random_batches import random_batch, save_backbone, schema

RATES = {"learning_rate": 1e-3, "new_learning_rate": 2e-3, "textless_learning_rate": 3e-3}


@pytest.fixture(scope="module")
def backbone(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_backbone(tmp_path_factory.mktemp("backbone"))


class Training:
    """A new model, equal every time, and its optimisers."""

    def __init__(self, backbone: str, virtual_tokens: str = "both", **options: Any) -> None:
        torch.manual_seed(1)
        # The temperature keeps the softmax from saturating, where gradients would be no larger than epsilon.
        options_of_model = {"virtual_tokens": virtual_tokens, "temperature": 50.0}
        self.model = Heterformer.from_backbone(backbone, schema(), **options_of_model)
        self.optimizers = Optimizers(self.model, TrainingOptions(**RATES | options))

    def step(self, seed: int) -> None:
        vectors = self.model.encode_batch(random_batch(seed))
        queries, keys = vectors.chunk(2)
        link_prediction_loss(self.model.scores(queries, keys)).backward()
        self.optimizers.step()
        self.optimizers.zero_grad()

    def weights(self) -> dict[str, Tensor]:
        return {name: value.clone() for name, value in self.model.state_dict().items()}

    def tokens(self) -> nn.Parameter:
        return self.model.get_input_embeddings().get_parameter("weight")

    def settings(self, parameter: nn.Parameter) -> dict[str, Any]:
        """The group of the one optimiser that holds a parameter."""
        groups = [group for optimizer in self.optimizers.each() for group in optimizer.param_groups]
        (group,) = [g for g in groups if any(p is parameter for p in g["params"])]
        return group


def assert_equal(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert found.keys() == expected.keys()
    assert [name for name in found if not torch.equal(found[name], expected[name])] == []


def rows_changed(before: Tensor, now: Tensor) -> set[int]:
    return set((before != now).any(1).nonzero().flatten().tolist())


@pytest.mark.parametrize("sparse_tokens", [True, False])
def test_every_parameter_has_its_own_learning_rate_once(backbone: str, sparse_tokens: bool) -> None:
    training = Training(backbone, sparse_tokens=sparse_tokens, gate_learning_rate=None)
    rates = {"backbone": 1e-3, "new": 2e-3, "textless": 3e-3}
    groups = training.model.parameter_groups()
    assert all(groups.values())
    for name, parameters in groups.items():
        assert {training.settings(p)["lr"] for p in parameters} == {rates[name]}
    listed = [p for o in training.optimizers.each() for g in o.param_groups for p in g["params"]]
    assert len(listed) == len(list(training.model.parameters()))


@pytest.mark.parametrize("rate", [4e-3, None])
def test_gates_have_a_learning_rate_of_their_own_or_that_of_new_parameters(
    backbone: str, rate: float | None
) -> None:
    options = {"network_readout": "both", "second_hop": 2, "neighbor_codes": True}
    model = Heterformer.from_backbone(backbone, schema(), **options)
    optimizers = Optimizers(model, TrainingOptions(**RATES, gate_learning_rate=rate))
    names = {id(p): name for name, p in model.named_parameters()}
    rates = {names[id(p)]: g["lr"] for g in optimizers.dense.param_groups for p in g["params"]}
    assert len(rates) == len(optimizers.dense_parameters)
    gates = {name for name in rates if "gate" in name}
    assert gates == {names[id(p)] for p in gates_of(model)}
    assert len(gates) == 5
    assert {rates[name] for name in gates} == {rate or 2e-3}
    assert 2e-3 in {rates[name] for name in rates.keys() - gates}
    if rate is None:  # parameters are numbered as in checkpoints of runs that are older than the option
        vectors = [names[id(p)] for p in optimizers.dense.param_groups[-1]["params"]]
        new = [names[id(p)] for p in model.parameter_groups()["new"] if p.ndim <= 1]
        assert vectors == new


def test_matrices_decay_and_vectors_do_not(backbone: str) -> None:
    training = Training(backbone, weight_decay=0.125)
    for parameter in training.optimizers.dense_parameters:
        assert training.settings(parameter)["weight_decay"] == (0.125 if parameter.ndim > 1 else 0.0)


def test_decay_shrinks_matrices(backbone: str) -> None:
    weights = {decay: Training(backbone, weight_decay=decay) for decay in (0.0, 0.5)}
    for training in weights.values():
        training.step(0)
    layer = "backbone.encoder.layer.0.output.dense."
    without, shrunk = (weights[decay].weights() for decay in (0.0, 0.5))
    start = Training(backbone).weights()[layer + "weight"]
    torch.testing.assert_close(shrunk[layer + "weight"], without[layer + "weight"] - 1e-3 * 0.5 * start)
    assert torch.equal(shrunk[layer + "bias"], without[layer + "bias"])


def test_a_step_changes_the_textless_rows_it_used_and_no_others(backbone: str) -> None:
    training = Training(backbone)
    for seed in (0, 3):  # the second step must not move on with the rows of the first
        before = training.weights()
        training.step(seed)
        batch, now = random_batch(seed), training.weights()
        for number, node_type in enumerate(schema().textless):
            name = f"textless.tables.{number}.weight"
            sent = {
                int(batch.textless[node_type][n])
                for r, edges in batch.neighbors.items()
                if r.neighbor == node_type
                for n in edges.node
            }
            assert 0 < len(sent) < len(now[name])
            assert rows_changed(before[name], now[name]) == sent


def test_a_step_changes_the_token_rows_it_used_and_no_others(backbone: str) -> None:
    training = Training(backbone, sparse_tokens=True)
    for seed in (0, 3):
        before = training.tokens().detach().clone()
        training.step(seed)
        changed = rows_changed(before, training.tokens())
        assert 0 < len(changed) < len(before)
        assert changed <= set(random_batch(seed).texts.tokens.tolist())


def test_dense_token_embeddings_decay_and_move_on(backbone: str) -> None:
    training = Training(backbone, sparse_tokens=False)
    assert any(p is training.tokens() for p in training.optimizers.dense_parameters)
    before = training.tokens().detach().clone()
    training.step(0)
    padding = {training.model.backbone.config.pad_token_id}  # is zero and stays it
    assert rows_changed(before, training.tokens()) == set(range(len(before))) - padding


def test_sparse_or_dense_tokens_is_the_same_first_step(backbone: str) -> None:
    # The two Adams differ in where they add epsilon, which counts where a gradient is as small.
    same = {"weight_decay": 0.0, "adam_epsilon": 1e-15}
    sparse, dense = (Training(backbone, sparse_tokens=s, **same) for s in (True, False))
    for training in (sparse, dense):
        training.step(0)  # moves a weight by 1e-3
    torch.testing.assert_close(sparse.weights(), dense.weights(), rtol=0, atol=3e-5)


@pytest.mark.parametrize("sparse_tokens", [True, False])
def test_the_state_is_exact_after_a_file(backbone: str, tmp_path: Path, sparse_tokens: bool) -> None:
    training = Training(backbone, sparse_tokens=sparse_tokens)
    training.step(0)
    training.step(1)
    save_file(training.optimizers.tensors(), tmp_path / "state.safetensors")

    other = Training(backbone, sparse_tokens=sparse_tokens)
    other.model.load_state_dict(training.weights())
    other.optimizers.load_tensors(load_file(tmp_path / "state.safetensors"))
    assert_equal(other.optimizers.tensors(), training.optimizers.tensors())

    training.step(2)
    other.step(2)
    assert_equal(other.weights(), training.weights())
    assert_equal(other.optimizers.tensors(), training.optimizers.tensors())


def test_a_step_depends_on_the_state(backbone: str) -> None:
    """Without which the test above could not fail."""
    training, other = Training(backbone), Training(backbone)
    training.step(0)
    other.model.load_state_dict(training.weights())
    training.step(2)
    other.step(2)
    assert not torch.equal(other.tokens(), training.tokens())


def test_the_state_before_any_step_is_empty_and_loads(backbone: str) -> None:
    training = Training(backbone)
    assert training.optimizers.tensors() == {}
    training.optimizers.load_tensors({})
    training.step(0)


def test_what_gets_no_gradient_is_left_alone(backbone: str) -> None:
    training = Training(backbone, virtual_tokens="none")
    before = training.weights()
    training.step(0)
    now = training.weights()
    changed = {name for name in now if not torch.equal(now[name], before[name])}
    assert changed
    assert all(name.startswith("backbone.") for name in changed)


def test_a_network_without_textless_nodes_needs_no_row_optimiser(backbone: str) -> None:
    torch.manual_seed(1)
    relations = tuple(r for r in schema().relations if r.target == "paper")
    counts = {t: schema().counts[t] for t in schema().text_rich}
    neighbors = {t: n for t, n in schema().neighbors.items() if t in counts}
    only_texts = replace(schema(), textless=(), relations=relations, counts=counts, neighbors=neighbors)
    model = Heterformer.from_backbone(backbone, only_texts)
    assert len(list(Optimizers(model, TrainingOptions(sparse_tokens=False)).each())) == 1
    assert len(list(Optimizers(model, TrainingOptions(sparse_tokens=True)).each())) == 2
