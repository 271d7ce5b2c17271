"""Low-rank adapters (LoRA; Hu et al., 2022): a frozen weight W is read as W + B A, and only A and B learn.

The weight itself is parametrised. Layers read ``.weight`` and join several into one product, so a wrapper
around a linear map would be passed over. A checkpoint holds W, A and B; a saved model holds their sum and
opens as any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from heterformer.models.plm.layouts import layout_class

ORIGINAL = ".parametrizations.weight.original"
DOWN, UP = ".parametrizations.weight.0.down", ".parametrizations.weight.0.up"


class LowRank(nn.Module):
    """``W`` to ``W + B A``. B starts at 0, so that the first vectors are those of the backbone."""

    def __init__(self, weight: Tensor, rank: int) -> None:
        super().__init__()
        outputs, inputs = weight.shape
        self.down = nn.Parameter(weight.new_empty(rank, inputs).normal_(std=inputs**-0.5))  # A
        self.up = nn.Parameter(weight.new_zeros(outputs, rank))  # B

    def forward(self, weight: Tensor) -> Tensor:
        return weight + self.up @ self.down


def add_adapters(plm: Any, rank: int, targets: str) -> None:
    """Freeze a PLM and adapt the linear maps of its layers: 'attention', 'mlp' or 'all' of them."""
    plm.requires_grad_(False)
    for module in list(_targets(plm, targets)):
        parametrize.register_parametrization(module, "weight", LowRank(module.weight, rank))


def _targets(plm: Any, targets: str) -> Iterator[nn.Linear]:
    for layer in layout_class(plm).layers_of(plm):
        for name, module in layer.named_modules():
            kind = "attention" if name.startswith("att") else "mlp"  # of all layouts
            if isinstance(module, nn.Linear) and targets in (kind, "all"):
                yield module


def is_adapter(name: str) -> bool:
    """Whether a parameter is part of an adapter."""
    return name.endswith((DOWN, UP))


def merged(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights of the model without adapters that gives the same vectors."""
    result = {}
    for name, value in weights.items():
        if name.endswith(ORIGINAL):
            module = name.removesuffix(ORIGINAL)
            value = value + (weights[module + UP] @ weights[module + DOWN]).to(value.dtype)
            result[module + ".weight"] = value
        elif not is_adapter(name):
            result[name] = value
    return result


def fitted(weights: Mapping[str, Tensor], model: nn.Module) -> dict[str, Tensor]:
    """Weights as the model can load them: adapters that it lacks are merged, those it has start anew."""
    own = model.state_dict()
    if any(name.endswith(ORIGINAL) for name in weights) and not any(map(is_adapter, own)):
        return merged(weights)
    result = dict(weights)
    for name in own:
        module = name.removesuffix(ORIGINAL)
        if name.endswith(ORIGINAL) and module + ".weight" in result:
            result[name] = result.pop(module + ".weight")
            result |= {module + DOWN: own[module + DOWN], module + UP: torch.zeros_like(own[module + UP])}
    return result
