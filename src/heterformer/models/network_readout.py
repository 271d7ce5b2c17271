"""Network readout: neighbours become part of the vector itself, after the last layer. It is ours.

Virtual neighbour tokens must change what the PLM says of a text before they change its vector. The readout
adds the neighbours' final vectors and the textless neighbours to the vector: what a cascade of PLM and graph
convolution has from the first step, on top of what nesting learns.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from heterformer.batches.batch import Neighbors
from heterformer.models.aggregation import Aggregation, EdgeProjections, Neighborhoods
from heterformer.network.schema import EdgeType, NodeType

STARTS = {"text_rich": 1.0, "textless": 0.3}  # of the gates beside an attention


class NetworkReadout(nn.Module):
    """Adds what the neighbours of each kind say to the centres' vectors."""

    gates: nn.ParameterDict

    def __init__(self, kinds: Sequence[str], layer: int) -> None:
        super().__init__()
        self.kinds = kinds
        self.layer = layer  # the place of the final vectors among a text's states

    def forward(self, vectors: Tensor, neighborhoods: Mapping[str, Neighborhoods]) -> Tensor:
        """(B, d) to (B, d)."""
        return vectors + sum(self.added(kind, vectors, neighborhoods[kind]) for kind in self.kinds)

    @abstractmethod
    def added(self, kind: str, vectors: Tensor, neighborhoods: Neighborhoods) -> Tensor:
        """(B, d): what the neighbours of one kind add."""


class MeanReadout(NetworkReadout):
    """``h + sum_r g_r mean_{j in N_r} W_r h_j``: a mean and a learnt gate ``g_r`` per edge type ``r``.

    Who cites a paper and whom it cites, its authors and its venue each have a weight of their own. The gates
    of a kind start at equal shares of 1.
    """

    def __init__(self, edge_types: Mapping[str, Sequence[EdgeType]], layer: int) -> None:
        super().__init__(tuple(edge_types), layer)
        self.gates = _gates(edge_types)

    def added(self, kind: str, vectors: Tensor, neighborhoods: Neighborhoods) -> Tensor:
        messages = neighborhoods.messages_at(self.layer)  # (E, d)
        weighted = self.weights(kind, neighborhoods)[:, None] * messages
        return torch.zeros_like(vectors).index_add(0, neighborhoods.center, weighted.to(vectors.dtype))

    def weights(self, kind: str, neighborhoods: Neighborhoods) -> Tensor:
        """(E,): what each message counts, ``g_r / |N_r|``."""
        gates: Tensor = self.gates[kind]
        edge_type = neighborhoods.edge_type
        group = neighborhoods.center * max(len(gates), 1) + edge_type  # the neighbours of N_r have one number
        siblings = torch.bincount(group)[group] if len(group) else group
        return gates[edge_type] / siblings


class NeighborReadout(nn.Module):
    """``h_j + sum_r g_r W_r mean_{k in N_r(j)} h_k``: a neighbour's final vector, its own neighbours added.

    ``W_r`` is that of the first hop. Means are taken before it, since there are fewer nodes than edges.
    """

    def __init__(self, edge_types: Mapping[str, Sequence[EdgeType]]) -> None:
        super().__init__()
        self.place = {r: (kind, i) for kind, group in edge_types.items() for i, r in enumerate(group)}
        self.gates = _gates(edge_types)

    def forward(
        self,
        vectors: Tensor,
        edges: Mapping[EdgeType, Neighbors],
        sources: Mapping[NodeType, Tensor],
        projections: EdgeProjections,
    ) -> Tensor:
        """(U, d) to (U, d); ``sources`` are the vectors of nodes by type, to which ``edges`` point."""
        result = vectors
        for edge_type, neighbors in edges.items():
            if edge_type not in self.place:
                continue
            kind, number = self.place[edge_type]
            centers, group = torch.unique(neighbors.center, return_inverse=True)
            sent = sources[edge_type.neighbor][neighbors.node].to(vectors.dtype)  # (E_r, d)
            total = vectors.new_zeros(len(centers), vectors.shape[1]).index_add(0, group, sent)
            mean = total / torch.bincount(group)[:, None]
            message = self.gates[kind][number] * projections(edge_type, mean)  # (n, d)
            result = result.index_add(0, centers, message.to(result.dtype))
        return result


class AttentionReadout(NetworkReadout):
    """``h + g_tr z_tr + g_tl z_tl``: the attention of Eq. 6 to 8, and a gate, per kind of neighbour."""

    def __init__(self, kinds: Sequence[str], layer: int, width: int, heads: int) -> None:
        super().__init__(kinds, layer)
        self.aggregations = nn.ModuleDict({kind: Aggregation(width, heads) for kind in kinds})
        self.gates = nn.ParameterDict({kind: torch.tensor([STARTS[kind]]) for kind in kinds})

    def added(self, kind: str, vectors: Tensor, neighborhoods: Neighborhoods) -> Tensor:
        messages = neighborhoods.messages_at(self.layer)  # (E, d)
        gate: Tensor = self.gates[kind]
        token: Tensor = self.aggregations[kind](vectors, messages, neighborhoods)
        return gate * token


def _gates(edge_types: Mapping[str, Sequence[EdgeType]]) -> nn.ParameterDict:
    """A gate per edge type; those of a kind start at equal shares of 1."""
    starts = {kind: 1 / _most_per_center(group) for kind, group in edge_types.items()}
    return nn.ParameterDict(
        {kind: torch.full((len(group),), starts[kind]) for kind, group in edge_types.items()}
    )


def _most_per_center(edge_types: Sequence[EdgeType]) -> int:
    """Under how many of the edge types a node can have neighbours."""
    centers = [r.center for r in edge_types]
    return max((centers.count(center) for center in centers), default=1)
