"""Dynamic loss scaling (Micikevicius et al., 2018), without which small gradients vanish in fp16."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

START = 2.0**16
INTERVAL = 2000  # steps without an overflow after which the scale is doubled


@dataclass
class LossScale:
    """What the loss is multiplied with. It is saved with a run's position, so that a run resumes with it."""

    value: float = START
    steps: int = 0  # since the last change

    def unscale(self, parameters: Iterable[nn.Parameter]) -> bool:
        """Divide the gradients by the scale; false if one of them has overflown and must not be used."""
        gradients = [gradient for p in parameters if (gradient := _values(p)) is not None]
        if not gradients:
            return True
        for gradient in gradients:
            gradient.div_(self.value)
        return bool(torch.nn.utils.get_total_norm(gradients).isfinite())

    def update(self, finite: bool) -> None:
        """Halve the scale after an overflow, double it after many steps without one."""
        self.steps += 1
        if not finite:
            self.value, self.steps = max(1.0, self.value / 2), 0
        elif self.steps == INTERVAL:
            self.value, self.steps = self.value * 2, 0


def _values(parameter: nn.Parameter) -> Tensor | None:
    """The numbers of a gradient; of a sparse one, those of the rows that it has."""
    gradient = parameter.grad
    if gradient is None or not gradient.is_sparse:
        return gradient
    parameter.grad = gradient.coalesce()
    return parameter.grad.values()
