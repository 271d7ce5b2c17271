"""The optimisers: Adam for dense parameters, row-wise Adam for tables of which a step touches few rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import AdamW, Optimizer, SparseAdam

from heterformer.models.backbone_encoder import BackboneEncoder
from heterformer.models.contract import NodeEncoder
from heterformer.models.plm.layouts import layout_class
from heterformer.training.options import TrainingOptions

# The gates of a readout, of neighbour codes, and that of HGT between a node and its neighbours.
GATE = re.compile(r"(^|\.)(gates?|skip)(\.|$)")


class Optimizers:
    """Two optimisers that step together.

    Textless tables (and, by option, token embeddings) have sparse gradients and are updated by lazy
    Adam: a step touches only the rows it used, so that its cost does not depend on their number.
    """

    def __init__(self, model: NodeEncoder, options: TrainingOptions) -> None:
        groups = model.parameter_groups()
        tokens = model.get_input_embeddings()
        assert isinstance(tokens, nn.Embedding)
        sparse = set()
        if any(p is tokens.weight for p in groups["backbone"]):  # a model without PLM has a table of its own
            tokens.sparse = options.sparse_tokens
            sparse = {id(tokens.weight)} if options.sparse_tokens else set()
        backbone = [p for p in groups["backbone"] if id(p) not in sparse]
        rates = [(backbone, options.learning_rate)]
        if options.layer_decay < 1 and isinstance(model, BackboneEncoder):
            rates = _rates_by_layer(model, backbone, options.learning_rate, options.layer_decay)
        gates = gates_of(model) if options.gate_learning_rate else []
        rates.append((_without(groups["new"], gates), options.new_rate))
        rates.append((gates, options.gate_learning_rate or options.new_rate))
        self.dense: Optimizer = AdamW(
            [
                group
                for parameters, rate in rates
                for group in _decayed(parameters, rate, options.weight_decay)
            ],
            eps=options.adam_epsilon,
            fused=True,
        )
        rows = [{"params": groups["textless"], "lr": options.textless_learning_rate}]
        if sparse:
            rows.append({"params": [tokens.weight], "lr": options.learning_rate})
        self.rows: Optimizer | None = None
        if rows := [group for group in rows if group["params"]]:
            self.rows = SparseAdam(rows, eps=options.adam_epsilon)
        self._rates = [[group["lr"] for group in optimizer.param_groups] for optimizer in self.each()]
        self.dense_parameters, self.row_parameters = (_parameters(o) for o in (self.dense, self.rows))

    def each(self) -> Iterator[Optimizer]:
        yield self.dense
        if self.rows is not None:
            yield self.rows

    def step(self, rate_factor: float = 1.0) -> None:
        """Take a step with all learning rates multiplied by ``rate_factor``."""
        for optimizer, rates in zip(self.each(), self._rates, strict=True):
            for group, rate in zip(optimizer.param_groups, rates, strict=True):
                group["lr"] = rate * rate_factor
            optimizer.step()

    def zero_grad(self) -> None:
        for optimizer in self.each():
            optimizer.zero_grad(set_to_none=True)

    def tensors(self) -> dict[str, Tensor]:
        """The whole state, flat, as a safetensors file holds it."""
        flat = {}
        for o, optimizer in enumerate(self.each()):
            for p, state in optimizer.state_dict()["state"].items():
                for name, value in state.items():
                    flat[f"{o}.{p}.{name}"] = value if isinstance(value, Tensor) else torch.tensor(value)
        return flat

    def load_tensors(self, flat: dict[str, Tensor]) -> None:
        """The way back of ``tensors``."""
        for o, optimizer in enumerate(self.each()):
            values = optimizer.state_dict()
            states: dict[int, dict[str, Any]] = {}
            for key, value in flat.items():
                number, parameter, name = key.split(".", 2)
                if int(number) == o:
                    states.setdefault(int(parameter), {})[name] = _restored(optimizer, name, value)
            optimizer.load_state_dict({"state": states, "param_groups": values["param_groups"]})


def _parameters(optimizer: Optimizer | None) -> list[nn.Parameter]:
    return [p for group in optimizer.param_groups for p in group["params"]] if optimizer is not None else []


def _restored(optimizer: Optimizer, name: str, value: Tensor) -> Any:
    # SparseAdam counts its steps in a plain integer, AdamW in a tensor.
    return int(value) if name == "step" and isinstance(optimizer, SparseAdam) else value


def _rates_by_layer(
    model: BackboneEncoder, parameters: list[nn.Parameter], rate: float, decay: float
) -> list[tuple[list[nn.Parameter], float]]:
    """The learning rates of a backbone's layers; the last has ``rate``, the embeddings have the least."""
    layers = list(layout_class(model.backbone).layers_of(model.backbone))
    depths = {id(p): depth for depth, layer in enumerate(layers, 1) for p in layer.parameters()}
    by_depth: dict[int, list[nn.Parameter]] = {}
    for parameter in parameters:
        by_depth.setdefault(depths.get(id(parameter), 0), []).append(parameter)
    return [(by_depth[depth], rate * decay ** (len(layers) - depth)) for depth in sorted(by_depth)]


def gates_of(model: NodeEncoder) -> list[nn.Parameter]:
    """The new parameters that are single numbers and say how much neighbours count."""
    return [p for name, p in model.named_parameters() if p.requires_grad and GATE.search(name)]


def _without(parameters: list[nn.Parameter], others: list[nn.Parameter]) -> list[nn.Parameter]:
    left_out = {id(p) for p in others}
    return [p for p in parameters if id(p) not in left_out]


def _decayed(parameters: list[nn.Parameter], rate: float, weight_decay: float) -> list[dict[str, Any]]:
    """Matrices decay; biases and normalisations, which are vectors, do not."""
    matrices = [p for p in parameters if p.ndim > 1]
    vectors = [p for p in parameters if p.ndim <= 1]
    groups = [
        {"params": matrices, "lr": rate, "weight_decay": weight_decay},
        {"params": vectors, "lr": rate, "weight_decay": 0.0},
    ]
    return [group for group in groups if group["params"]]
