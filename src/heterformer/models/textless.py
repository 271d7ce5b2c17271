"""Nodes without text (Eq. 9): a short embedding each, widened to the PLM's space by their type's matrix."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from heterformer.network.schema import NodeType, Schema


class TextlessNodes(nn.Module):
    """``h_v = W_phi h_v^(0)``: ``W_phi`` per type (or one for all), the same in every layer."""

    def __init__(self, schema: Schema, dim: int, width: int, heterogeneous: bool) -> None:
        super().__init__()
        self.table = {t: i for i, t in enumerate(schema.textless)}
        self.projection = {t: i if heterogeneous else 0 for t, i in self.table.items()}
        # Sparse gradients: a step costs what its rows cost, however many rows there are.
        self.tables = nn.ModuleList(_table(schema.counts[t], dim) for t in schema.textless)
        self.projections = nn.ModuleList(
            nn.Linear(dim, width, bias=False) for _ in set(self.projection.values())
        )

    def parameters_of(self, node_type: NodeType) -> tuple[Tensor, Tensor]:
        """A type's table of ``h^(0)`` and its ``W_phi``."""
        table = self.tables[self.table[node_type]].get_parameter("weight")
        return table, self.projections[self.projection[node_type]].get_parameter("weight")

    def take(self, node_type: NodeType, embeddings: Tensor) -> None:
        """Let these ``h^(0)``, (n, 64), be all that there is of a type."""
        self.tables[self.table[node_type]] = nn.Embedding(
            len(embeddings), embeddings.shape[1], _weight=embeddings
        )

    def embeddings(self, node_type: NodeType, rows: Tensor) -> Tensor:
        """``h^(0)`` of the nodes ``rows`` of one type."""
        embeddings: Tensor = self.tables[self.table[node_type]](rows)  # (n, 64)
        return embeddings

    def forward(self, node_type: NodeType, rows: Tensor) -> Tensor:
        projection = self.projections[self.projection[node_type]]
        vectors: Tensor = projection(self.embeddings(node_type, rows))  # (n, d), Eq. 9
        return vectors


def _table(rows: int, dim: int) -> nn.Embedding:
    """Given an empty tensor, the constructor does not draw ten million rows that are then drawn again."""
    return nn.Embedding(rows, dim, sparse=True, _weight=torch.empty(rows, dim))
