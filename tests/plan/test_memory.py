from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from heterformer.batches.batch import Batch
from heterformer.batches.batcher import Batcher
from heterformer.batches.visible import VisibleNetwork
from heterformer.errors import InputError
from heterformer.models.contract import NodeEncoder
from heterformer.models.registry import MODELS
from heterformer.network.build.frames import temporary_folder
from heterformer.network.schema import Schema
from heterformer.network.split.draw import make_split
from heterformer.network.split.options import SplitOptions
from heterformer.plan.memory import ModelSize, StepShape, activations
from heterformer.training.losses import link_prediction_loss
from heterformer.training.optimizers import Optimizers
from heterformer.training.options import TrainingOptions
from tests.learning import save_reader, tiny_network, tiny_options, tiny_reader, tiny_tokens
from tests.plan.planning import planned

NAMES = [name for name in MODELS if name != "mean_sage"]


def model_of(options: TrainingOptions, schema: Schema | None = None) -> NodeEncoder:
    """The model itself, numbers and all."""
    model, schema = options.model, schema or tiny_network().schema
    return MODELS[model.name].from_backbone(model.backbone, schema, **model.config_values())


def options_for(name: str, **more: Any) -> TrainingOptions:
    return tiny_options(tiny_reader(), model=name, **more)


@pytest.mark.parametrize("name", NAMES)
def test_parameters_are_those_of_the_model(name: str) -> None:
    options = options_for(name)
    size, model = ModelSize.from_options(tiny_network().schema, options), model_of(options)
    assert size.parameters == sum(p.numel() for p in model.parameters())
    assert size.textless_tables == sum(p.numel() for p in model.parameter_groups()["textless"])
    assert size.token_table == model.get_input_embeddings().weight.numel()
    assert size.states == model.text_states(_batch().texts.first(1)).shape[1]


@cache
def _batch() -> Batch:
    network = tiny_network()
    split = make_split(network, SplitOptions())
    batcher = Batcher(VisibleNetwork.for_training(network, split), tiny_tokens())
    return batcher.pairs(split.train[:16], np.uint64(0))


def test_ablations_have_other_parts() -> None:
    sizes = {
        tokens: ModelSize.from_options(
            tiny_network().schema, options_for("heterformer", virtual_tokens=tokens)
        )
        for tokens in ("both", "text_rich", "textless", "none")
    }
    assert {t: s.states for t, s in sizes.items()} == {"both": 2, "text_rich": 2, "textless": 0, "none": 0}
    plain = options_for("heterformer", network_readout="none")
    assert ModelSize.from_options(tiny_network().schema, plain).states == 1
    learns = {t: s.learns_textless for t, s in sizes.items()}
    assert learns == {"both": True, "text_rich": False, "textless": True, "none": False}


def test_tables_that_fit_into_no_memory() -> None:
    plan = planned(scale=1e7)
    counts = tiny_network().schema.counts
    rows = 10**7 * (counts["author"] + counts["venue"])
    memory = plan.together[0].memory
    assert memory.textless == 4 * 8 * rows
    assert memory.textless_moments == 2 * memory.textless
    assert plan.embedding.textless_moments == 0


def test_without_backbone_there_is_no_plan() -> None:
    with pytest.raises(InputError, match="model is 'mean_sage', which has no backbone"):
        ModelSize.from_options(tiny_network().schema, tiny_options(tiny_reader(), model="mean_sage"))


@pytest.mark.parametrize("sparse_tokens", [True, False])
def test_moments_are_the_optimisers_state(sparse_tokens: bool) -> None:
    options = tiny_options(tiny_reader(), sparse_tokens=sparse_tokens)
    model = model_of(options)
    optimizers = Optimizers(model, options)
    batch = _batch()
    queries, keys, _ = batch.by_role(model.encode_batch(batch))
    link_prediction_loss(model.scores(queries, keys)).backward()
    unused = sum(p.numel() for p in optimizers.dense_parameters if p.grad is None)
    assert unused == 16  # the keys' bias of a layer of which only [CLS] is read
    optimizers.step()
    tables = {id(p) for p in model.parameter_groups()["textless"]}
    kept = {True: 0, False: 0}
    for optimizer in optimizers.each():
        for parameter, state in optimizer.state.items():
            sizes = [state[name].numel() * 4 for name in ("exp_avg", "exp_avg_sq")]
            kept[id(parameter) in tables] += sum(sizes)
    memory = planned(options).together[0].memory
    assert kept == {True: memory.textless_moments, False: memory.moments - 2 * 4 * unused}
    assert memory.weights + memory.textless == 4 * sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize("limit", [{"lora": 2}, {"lora": 2, "lora_targets": "mlp"}, {"freeze": "backbone"}])
def test_frozen_weights_have_no_moments_and_no_gradients(limit: dict[str, Any]) -> None:
    options, usual = options_for("heterformer", **limit), options_for("heterformer")
    model = model_of(options)
    size = ModelSize.from_options(tiny_network().schema, options)
    learning = sum(p.numel() for p in model.parameters() if p.requires_grad)
    assert size.parameters == sum(p.numel() for p in model.parameters())
    assert size.parameters - size.frozen == learning
    memory, whole = (planned(o).together[0].memory for o in (options, usual))
    assert memory.moments + memory.textless_moments == 2 * 4 * learning
    assert memory.gradients < whole.gradients
    assert memory.weights >= whole.weights  # frozen weights are still there
    assert planned(options).disk.checkpoints < planned(usual).disk.checkpoints


def test_a_mean_of_weights_and_mined_negatives_need_memory() -> None:
    usual = planned(options_for("heterformer", neighbor_states="cached"))
    average = planned(options_for("heterformer", neighbor_states="cached", average_last=3))
    whole = 4 * usual.size.parameters
    assert average.together[0].memory.weights - usual.together[0].memory.weights == whole
    assert average.disk.checkpoints - usual.disk.checkpoints == whole
    mined = planned(options_for("heterformer", neighbor_states="cached", hard_negatives=2))
    ratio = mined.together[0].memory.activations / usual.together[0].memory.activations
    assert 1.7 < ratio < 2.1  # twice as many nodes; some of it is the size of the weights
    assert mined.together[0].memory.exchanged > usual.together[0].memory.exchanged


@cache
def _reader() -> str:
    """Wide enough that states outweigh what is kept once per text."""
    return save_reader(temporary_folder(), layers=3, width=48, heads=3, initializer_range=0.1)


@pytest.mark.parametrize(
    ("live", "precision", "more"),
    [
        (True, "float32", {}),
        (True, "float32", {"readout": "mean", "neighbor_pooling": "mean"}),
        (False, "float32", {}),
        (True, "float32", {"virtual_tokens": "none"}),
        (True, "float32", {"network_readout": "none"}),
        (False, "float32", {"network_readout": "none"}),
        (True, "float32", {"model": "bert"}),
        (True, "float32", {"model": "graph_formers"}),
        (True, "bf16", {"readout": "mean", "neighbor_pooling": "mean"}),
    ],
)
def test_activations_are_what_the_backward_pass_keeps(
    live: bool, precision: str, more: dict[str, Any]
) -> None:
    options = tiny_options(_reader(), **more)
    model, batch = model_of(options).train(), _batch()
    size = ModelSize.from_options(tiny_network().schema, options)
    states = None
    if not live:
        states = model.text_states(batch.texts.first(batch.neighbor_texts)).detach()
    weights = {p.untyped_storage().data_ptr() for p in model.parameters()}
    kept: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with (
        torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor),
        torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"),
    ):
        vectors = model.encode_batch(batch) if states is None else model(batch, states)
    assert vectors.requires_grad

    textless = sum(e.node.numel() for r, e in batch.neighbors.items() if r.neighbor != "paper")
    tokens = float(batch.texts.lengths.float().mean())
    shape = StepShape(len(batch.centers), batch.neighbor_texts, textless, tokens, live)
    number = 4 if precision == "float32" else 2
    widest = max(len(batch.centers), batch.neighbor_texts if live and size.states else 0)
    later = 6 * size.width * widest * tokens * number + (precision == "bf16") * 2 * number * size.dense
    told = activations(size, shape, precision) - later
    assert told == pytest.approx(sum(kept.values()), rel=0.15)
