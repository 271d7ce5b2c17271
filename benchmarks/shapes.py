"""Batches of the shapes that the paper's networks have, and a training step on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from heterformer import Heterformer
from heterformer.batches.batch import Batch, Neighbors, Texts
from heterformer.network.schema import EdgeType, Relation, Schema

PAIRS = 30


@dataclass(frozen=True)
class Shape:
    """Text lengths and neighbour counts of one of the paper's networks."""

    limit: int
    text_neighbors: int
    textless: dict[str, int]

    def lengths(self, count: int, generator: torch.Generator) -> Tensor:
        if self.limit == 32:  # titles: mean 14
            drawn = torch.randn(count, generator=generator) * 5 + 13.7
            return drawn.round().long().clamp(4, self.limit)
        short = torch.randint(16, self.limit, (count,), generator=generator)  # descriptions, cut: mean 58
        return torch.where(torch.rand(count, generator=generator) < 0.79, self.limit, short)

    def schema(self) -> Schema:
        relations = [Relation("cites", "text", "text")]
        relations += [Relation(f"has_{t}", "text", t) for t in self.textless]
        return Schema(
            text_rich=("text",),
            textless=tuple(self.textless),
            counts={"text": 100_000} | dict.fromkeys(self.textless, 2_000),
            relations=tuple(relations),
            predict="cites",
            neighbors={"text": self.text_neighbors} | self.textless,
            max_tokens=self.limit,
        )

    def batch(self) -> Batch:
        """60 centres whose neighbours are all different texts: nothing is gained from repetition."""
        generator = torch.Generator().manual_seed(0)
        centers, neighbors = 2 * PAIRS, 2 * PAIRS * self.text_neighbors
        lengths = self.lengths(neighbors + centers, generator)
        offsets = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])
        tokens = torch.randint(1000, 30000, (int(offsets[-1]),), generator=generator)
        edges = {
            EdgeType("text", "cites", "text"): Neighbors(
                torch.arange(centers).repeat_interleave(self.text_neighbors), torch.arange(neighbors)
            )
        }
        textless = {}
        for node_type, count in self.textless.items():
            rows = torch.randint(0, 2_000, (centers * count,), generator=generator)
            textless[node_type], node = rows.unique(return_inverse=True)
            edges[EdgeType("text", f"has_{node_type}", node_type)] = Neighbors(
                torch.arange(centers).repeat_interleave(count), node
            )
        return Batch(
            Texts(tokens, offsets), neighbors, torch.arange(neighbors, neighbors + centers), edges, textless
        )


SHAPES = {
    "dblp": Shape(32, 5, {"author": 3, "venue": 1}),
    "goodreads": Shape(64, 5, {"shelf": 5, "author": 2, "language": 1, "publisher": 1, "format": 1}),
}


# The paper's reading, which is what the literal forms do: [CLS] states, plain inner products.
PAPER_READING: dict[str, Any] = {
    "neighbor_pooling": "cls",
    "readout": "cls",
    "normalize": False,
    "temperature": 1.0,
}


def new_model(shape: Shape, **options: Any) -> Heterformer:
    """MiniLM, the backbone that comes along, read as in the paper."""
    torch.manual_seed(0)
    return Heterformer.from_backbone("minilm", shape.schema(), **PAPER_READING, **options)


def in_batch_loss(vectors: Tensor) -> Tensor:
    """Eq. 13: each query's own key among all keys of the batch."""
    queries, keys = vectors.chunk(2)
    return F.cross_entropy(queries @ keys.T, torch.arange(len(queries)))


def new_optimizers(model: Heterformer) -> list[torch.optim.Optimizer]:
    """Adam for dense parameters, its lazy form for the tables of which a step touches few rows."""
    tokens = model.get_input_embeddings()
    tokens.sparse = True
    groups = model.parameter_groups()
    dense = [p for p in groups["backbone"] + groups["new"] if p is not tokens.weight]
    tables = [*groups["textless"], tokens.weight]
    return [torch.optim.AdamW(dense, lr=1e-5, fused=True), torch.optim.SparseAdam(tables, lr=1e-5)]


def training_step(
    vectors: Callable[[], Tensor], optimizers: list[torch.optim.Optimizer]
) -> Callable[[], Tensor]:
    """Forward, backward, update; gives the loss."""

    def step() -> Tensor:
        loss = in_batch_loss(vectors())
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        return loss.detach()

    return step
