"""Textless readout: the text-rich neighbours of a textless node become part of its vector. It is ours.

The paper's vector of a textless node is ``W_phi h^(0)``, which knows of its texts only what training wrote
into it. With the readout it is ``W_phi h^(0) + g z``: ``z`` is the attention of Eq. 6 to 8 over the final
vectors of its text-rich neighbours, so that a user is also what they have bought. The gate ``g`` is learnt.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from heterformer.batches.batch import TextlessCenters
from heterformer.models.aggregation import Aggregation, EdgeProjections, Neighborhoods
from heterformer.network.schema import Schema


class TextlessReadout(nn.Module):
    """Adds what its text-rich neighbours say to the vector of a textless node."""

    def __init__(self, schema: Schema, width: int, heads: int) -> None:
        super().__init__()
        edge_types = tuple(
            r for r in schema.edge_types if r.center in schema.textless and r.neighbor in schema.text_rich
        )
        self.edge_projections = EdgeProjections(edge_types, width, heterogeneous=True)
        self.aggregation = Aggregation(width, heads)
        self.gate = nn.Parameter(torch.ones(1))

    def forward(self, starts: Tensor, centers: TextlessCenters, vectors: Tensor) -> Tensor:
        """(C, d) to (C, d); ``vectors`` (U, d) are the final vectors of the batch's neighbour texts."""
        places, messages = [centers.rows[:0]], [starts.new_empty(0, starts.shape[1])]
        for edge_type, neighbors in centers.neighbors.items():
            places.append(neighbors.center)
            sent = self.edge_projections(edge_type, vectors[neighbors.node].to(starts.dtype))
            messages.append(sent.to(starts.dtype))
        every = Neighborhoods.from_edges(len(starts), torch.cat(places), (torch.cat(messages),))
        mixture: Tensor = self.aggregation(starts, every.messages_at(1), every)  # (C, d)
        return starts + self.gate * mixture
