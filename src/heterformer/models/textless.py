"""Nodes without text (Eq. 9): a short embedding each, widened to the PLM's space by their type's matrix."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from heterformer.batches.batch import Batch
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

    def embeddings(self, node_type: NodeType, rows: Tensor) -> Tensor:
        """``h^(0)`` of the nodes ``rows`` of one type."""
        embeddings: Tensor = self.tables[self.table[node_type]](rows)  # (n, 64)
        return embeddings

    def project(self, node_type: NodeType, embeddings: Tensor) -> Tensor:
        """``W_phi h^(0)``, (n, d), of embeddings of one type."""
        vectors: Tensor = self.projections[self.projection[node_type]](embeddings)  # Eq. 9
        return vectors

    def forward(self, node_type: NodeType, rows: Tensor) -> Tensor:
        """(n, d): the vectors of the nodes ``rows`` of one type."""
        return self.project(node_type, self.embeddings(node_type, rows))

    def of_batch(self, batch: Batch, node_type: NodeType) -> Tensor:
        """(n, d): the vectors of a batch's nodes of one type, from the embeddings it carries or the table."""
        if node_type in batch.textless_embeddings:
            return self.project(node_type, batch.textless_embeddings[node_type])
        return self(node_type, batch.textless.get(node_type, batch.centers[:0]))  # type: ignore[no-any-return]


def _table(rows: int, dim: int) -> nn.Embedding:
    """Given an empty tensor, the constructor does not draw ten million rows that are then drawn again."""
    return nn.Embedding(rows, dim, sparse=True, _weight=torch.empty(rows, dim))
