"""A model that knows the answer as soon as a batch shows it."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from heterformer.batches.batch import Batch, Texts
from heterformer.network.store import Network


class Cheater(nn.Module):
    """A query scores 1 with each node that it is shown as a neighbour, and 0 with all others.

    A vector is (the node itself, its neighbours), each one coordinate per text of the network.
    """

    device = torch.device("cpu")

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.texts = sum(network.schema.counts[t] for t in network.schema.text_rich)
        self.width = 2 * self.texts

    def text_states(self, texts: Texts) -> Tensor:
        return torch.zeros(len(texts), 1, 1)

    def forward(self, batch: Batch, states: Tensor) -> Tensor:
        assert batch.text_rows is not None
        assert len(states) == batch.neighbor_texts
        own = torch.zeros(len(batch.centers), self.texts)
        own[torch.arange(len(own)), batch.text_rows[batch.centers]] = 1
        shown = torch.zeros_like(own)
        for edge_type, edges in batch.neighbors.items():
            if edge_type.neighbor not in batch.textless:
                shown[edges.center, batch.text_rows[edges.node]] = 1
        return torch.cat([own, shown], 1)

    def scores(self, queries: Tensor, keys: Tensor, relation: str | None = None) -> Tensor:
        own, _ = keys.chunk(2, 1)
        _, shown = queries.chunk(2, 1)
        return shown @ own.T
