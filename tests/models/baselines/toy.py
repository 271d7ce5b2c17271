"""A toy graph, centre by centre: what each formula of a baseline's paper is written out on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor

from heterformer.batches.batch import Batch
from heterformer.network.build.frames import temporary_folder
from heterformer.network.schema import EdgeType
from tests.models.random_batches import new_model, random_batch, save_backbone


@cache
def backbone() -> str:
    return save_backbone(temporary_folder())


@dataclass(frozen=True)
class Toy:
    """A cascaded model with random weights, a batch, and vectors that stand for what the PLM says."""

    model: Any
    batch: Batch
    centers: Tensor  # (B, d)
    texts: Tensor  # (U, d)

    @classmethod
    def build(cls, name: str, **options: Any) -> Toy:
        model, batch = new_model(name, backbone(), **options).double(), random_batch(3, centers=12)
        generator = torch.Generator().manual_seed(5)
        numbers = [len(batch.centers), batch.neighbor_texts]
        vectors = [torch.randn(n, model.width, generator=generator, dtype=torch.float64) for n in numbers]
        with torch.no_grad():
            for parameter in model.convolution.parameters():  # none shall be zero, or as large as the others
                parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))
        return cls(model, batch, *vectors)

    @torch.no_grad()
    def vectors(self) -> Tensor:
        """(B, d): what the model makes of it."""
        found: Tensor = self.model.aggregate(self.centers, self.texts, self.batch)
        return found

    @torch.no_grad()
    def neighbors(self, i: int) -> list[tuple[EdgeType, Tensor]]:
        """The neighbours of centre ``i`` of all kinds: the edge type and the vector."""
        schema, found = self.model.schema, []
        for r, edges in self.batch.neighbors.items():
            for center, node in zip(edges.center.tolist(), edges.node.tolist(), strict=True):
                if center == i and r.neighbor in schema.text_rich:
                    found.append((r, self.texts[node]))
                elif center == i and hasattr(self.model, "textless"):
                    number = schema.textless.index(r.neighbor)
                    row = self.batch.textless[r.neighbor][node]
                    nodes = self.model.textless
                    found.append((r, nodes.projections[number].weight @ nodes.tables[number].weight[row]))
        return found

    def text_neighbors(self, i: int) -> list[Tensor]:
        return [h for r, h in self.neighbors(i) if r.neighbor in self.model.schema.text_rich]


def assert_equal(toy: Toy, expected: list[Tensor]) -> None:
    counts = {len(toy.neighbors(i)) for i in range(len(toy.centers))}
    assert 0 in counts
    assert max(counts) > 3
    torch.testing.assert_close(toy.vectors(), torch.stack(expected).detach(), atol=1e-10, rtol=0)


def attended(scores: list[Tensor], values: list[Tensor]) -> Tensor:
    """A softmax over a few scores, and the mixture of as many vectors."""
    weights = torch.softmax(torch.stack(scores), 0)
    return sum((w * v for w, v in zip(weights, values, strict=True)), torch.zeros_like(values[0]))


def heads(vector: Tensor, count: int) -> list[Tensor]:
    return list(vector.chunk(count))


def mean_sage(toy: Toy) -> list[Tensor]:
    """GraphSAGE with the mean: ``W_r h_i + W_l mean_j h_j + b``."""
    sage, found = toy.model.convolution, []
    for i, h in enumerate(toy.centers):
        neighbors = toy.text_neighbors(i)
        mean = torch.stack(neighbors).mean(0) if neighbors else torch.zeros(32, dtype=torch.float64)
        found.append(sage.lin_r.weight @ h + sage.lin_l.weight @ mean + sage.lin_l.bias)
    return found
