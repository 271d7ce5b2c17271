"""Nodes without text (Eq. 9): a short embedding each, widened to the PLM's space by their type's matrix."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from heterformer.batches.batch import Batch
from heterformer.models.attributes import AttributeEncoder
from heterformer.models.plm.rounding import project
from heterformer.network.encoding import AttributeRows, TypeEncoding
from heterformer.network.schema import NodeType, Schema
from heterformer.network.store import Network


class TextlessNodes(nn.Module):
    """``h_v = W_phi h_v^(0)``: ``W_phi`` per type (or one for all), the same in every layer.

    Where a type has an encoding of its attributes ``x_v``, ``h_v^(0)`` is a row of the table plus ``A x_v``:
    a node that has no row yet starts from what is known of it.
    """

    def __init__(
        self,
        schema: Schema,
        dim: int,
        width: int,
        heterogeneous: bool,
        encodings: Mapping[NodeType, TypeEncoding] | None = None,
    ) -> None:
        super().__init__()
        self.table = {t: i for i, t in enumerate(schema.textless)}
        self.projection = {t: i if heterogeneous else 0 for t, i in self.table.items()}
        self.encodings = {t: e for t, e in (encodings or {}).items() if t in self.table}
        # Sparse gradients: a step costs what its rows cost, however many rows there are.
        self.tables = nn.ModuleList(
            _table(schema.counts[t], dim, self.encodings.get(t)) for t in schema.textless
        )
        self.projections = nn.ModuleList(
            nn.Linear(dim, width, bias=False) for _ in set(self.projection.values())
        )
        self.attributes = nn.ModuleDict(
            {str(self.table[t]): AttributeEncoder(e, dim) for t, e in self.encodings.items()}
        )

    def parameters_of(self, node_type: NodeType) -> tuple[Tensor, Tensor]:
        """A type's table of ``h^(0)`` and its ``W_phi``."""
        table = self.tables[self.table[node_type]].get_parameter("weight")
        return table, self.projections[self.projection[node_type]].get_parameter("weight")

    def attribute_parameters_of(self, node_type: NodeType) -> list[nn.Parameter]:
        """Those of a type's ``A``; none if its attributes are not read."""
        if node_type not in self.encodings:
            return []
        return list(self.attributes[str(self.table[node_type])].parameters())

    def embeddings(self, node_type: NodeType, rows: Tensor) -> Tensor:
        """``h^(0)`` of the nodes ``rows`` of one type."""
        table: Any = self.tables[self.table[node_type]]
        embeddings: Tensor = table(rows)  # (n, 64)
        if node_type in self.encodings:
            embeddings = embeddings + self._encoded(node_type, table.numbers[rows], table.categories[rows])
        return embeddings

    def attribute_offsets(self, node_type: NodeType, attributes: AttributeRows) -> Tensor:
        """(n, 64): ``A x`` of nodes that need not be in the table."""
        table: Any = self.tables[self.table[node_type]]
        numbers = torch.from_numpy(attributes.numbers).to(table.weight.device)
        return self._encoded(node_type, numbers, torch.from_numpy(attributes.categories).to(numbers.device))

    def _encoded(self, node_type: NodeType, numbers: Tensor, categories: Tensor) -> Tensor:
        encoded: Tensor = self.attributes[str(self.table[node_type])](numbers, categories)
        return encoded

    def attribute_rows(self, node_type: NodeType) -> AttributeRows | None:
        """What is stored of the attributes of all nodes of a type; None if they are not read."""
        if node_type not in self.encodings:
            return None
        table: Any = self.tables[self.table[node_type]]
        return AttributeRows(table.numbers.float().cpu().numpy(), table.categories.cpu().numpy())

    @torch.no_grad()
    def read_attributes(self, network: Network) -> None:
        """Take the attributes of all nodes over from a network of the tables' sizes."""
        for node_type, encoding in self.encodings.items():
            table: Any = self.tables[self.table[node_type]]
            rows = encoding.read(network, node_type)
            table.numbers.copy_(torch.from_numpy(rows.numbers))
            table.categories.copy_(torch.from_numpy(rows.categories))

    def project(self, node_type: NodeType, embeddings: Tensor) -> Tensor:
        """``W_phi h^(0)``, (n, d), of embeddings of one type."""
        projection = self.projections[self.projection[node_type]]
        assert isinstance(projection, nn.Linear)
        return project(projection, embeddings)  # Eq. 9

    def forward(self, node_type: NodeType, rows: Tensor) -> Tensor:
        """(n, d): the vectors of the nodes ``rows`` of one type."""
        return self.project(node_type, self.embeddings(node_type, rows))

    def of_batch(self, batch: Batch, node_type: NodeType) -> Tensor:
        """(n, d): the vectors of a batch's nodes of one type, from the embeddings it carries or the table."""
        if node_type in batch.textless_embeddings:
            return self.project(node_type, batch.textless_embeddings[node_type])
        return self(node_type, batch.textless.get(node_type, batch.centers[:0]))  # type: ignore[no-any-return]


def _table(rows: int, dim: int, encoding: TypeEncoding | None) -> nn.Embedding:
    """Given an empty tensor, the constructor does not draw ten million rows that are then drawn again."""
    table = nn.Embedding(rows, dim, sparse=True, _weight=torch.empty(rows, dim))
    if encoding is not None:
        nothing = encoding.missing(rows)
        table.register_buffer("numbers", torch.from_numpy(nothing.numbers))
        table.register_buffer("categories", torch.from_numpy(nothing.categories))
    return table
