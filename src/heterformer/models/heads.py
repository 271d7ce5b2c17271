"""A head on nodes' vectors: the classes or the number of a node, learnt together with the model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heterformer.network.target_options import TargetKind


@dataclass(frozen=True)
class HeadConfig:
    """What a head predicts; saved in ``config.json``."""

    node_type: str
    kind: TargetKind
    """Whether a node has one class, may have several, or has a number."""
    classes: tuple[str, ...]
    """The classes; for numbers the name of the column."""
    hidden: int = 200
    """Width of its hidden layer; 0 for none."""
    dropout: float = 0.1
    mean: float = 0.0
    """Of the numbers in the training part, which are predicted in units of ``scale`` from here."""
    scale: float = 1.0

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"classes": list(self.classes)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> HeadConfig:
        return cls(**{**values, "classes": tuple(values["classes"])})


class NodeHead(nn.Module):
    """An MLP on vectors, (n, d) to (n, C); with ``temperature`` its probabilities are calibrated."""

    temperature: Tensor

    def __init__(self, config: HeadConfig, width: int, normalized: bool) -> None:
        super().__init__()
        self.config = config
        # Vectors of length 1 have tiny entries; the layers start for entries of about 1.
        self.factor = math.sqrt(width) if normalized else 1.0
        sizes = [width, *([config.hidden] if config.hidden else []), len(config.classes)]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(sizes))
        self.register_buffer("temperature", torch.ones(()))

    def forward(self, vectors: Tensor) -> Tensor:
        """(n, C): logits, or standardised numbers (n, 1)."""
        x = vectors * self.factor
        for layer in self.layers[:-1]:
            x = F.relu(layer(F.dropout(x, self.config.dropout, self.training)))
        output: Tensor = self.layers[-1](F.dropout(x, self.config.dropout, self.training))
        return output

    def probabilities(self, logits: Tensor) -> Tensor:
        """(n, C): calibrated; of one class per node they add up to 1."""
        logits = logits.float() / self.temperature
        return logits.softmax(-1) if self.config.kind == "single" else logits.sigmoid()

    def numbers(self, outputs: Tensor) -> Tensor:
        """(n,): the numbers themselves."""
        return outputs[:, 0].float() * self.config.scale + self.config.mean

    def loss(
        self, outputs: Tensor, targets: Tensor, weights: Tensor | None = None, smoothing: float = 0.0
    ) -> Tensor:
        """The sum over nodes of the cross entropy, or of the squared error in units of ``scale``.

        ``targets`` are (n, C), as ``network.targets.Targets`` has them; ``weights`` are of classes, (C,).
        """
        outputs = outputs.float()
        if self.config.kind == "number":
            return ((outputs - (targets - self.config.mean) / self.config.scale) ** 2).sum()
        if self.config.kind == "single":
            return F.cross_entropy(
                outputs, targets.argmax(-1), weights, label_smoothing=smoothing, reduction="sum"
            )
        smooth = targets * (1 - smoothing) + smoothing / 2
        loss = F.binary_cross_entropy_with_logits(outputs, smooth, weights, reduction="sum")
        return loss / outputs.shape[-1]
