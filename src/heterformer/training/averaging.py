"""A mean of the weights of several evaluations, which often ranks better than each of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor

from heterformer.models.contract import NodeEncoder

COUNT, WEIGHTS = "count", "weights."  # names in a file


@dataclass(frozen=True)
class WeightAverage:
    """The mean of up to ``last`` evaluated weights; each further one then counts as one part in ``last``.

    So it takes the room of one model, however many evaluations it is of. Tables of textless nodes are part
    of it.
    """

    last: int
    count: int = 0
    weights: Mapping[str, Tensor] = field(default_factory=dict)

    @torch.no_grad()
    def including(self, model: NodeEncoder) -> WeightAverage:
        """The mean with the model's weights as the latest."""
        count = self.count + 1
        share = 1 / min(count, self.last)
        weights = {}
        for name, now in model.state_dict().items():
            before = self.weights.get(name)
            if before is None or not now.is_floating_point():
                weights[name] = now.clone()
            else:
                weights[name] = torch.lerp(before.to(now.device), now, share)
        return WeightAverage(self.last, count, weights)

    @contextmanager
    def in_place(self, model: NodeEncoder) -> Iterator[None]:
        """The model has the mean inside, and its own weights again afterwards."""
        own = {name: value.clone() for name, value in model.state_dict().items()}
        model.load_state_dict(self.weights)
        try:
            yield
        finally:
            model.load_state_dict(own)

    def tensors(self) -> dict[str, Tensor]:
        """As a checkpoint holds it."""
        return {COUNT: torch.tensor(self.count)} | {WEIGHTS + n: value for n, value in self.weights.items()}

    def restored(self, tensors: Mapping[str, Tensor]) -> WeightAverage:
        """The way back of ``tensors``."""
        weights = {n.removeprefix(WEIGHTS): v for n, v in tensors.items() if n.startswith(WEIGHTS)}
        return WeightAverage(self.last, int(tensors[COUNT]), weights)
