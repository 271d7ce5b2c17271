"""MHA-based heterogeneous neighbour aggregation (Eq. 6 to 8): many neighbours in, one virtual token out."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import initialization as init

from heterformer.models.plm.rounding import project
from heterformer.network.schema import EdgeType

NEIGHBOR_KINDS = ("text_rich", "textless")  # and so of virtual neighbour tokens


class EdgeProjection(nn.Linear):
    """``W_r`` of one edge type."""

    def __init__(self, width: int) -> None:
        super().__init__(width, width, bias=False)

    def initialize(self, start: str, std: float) -> None:
        _start(self.weight, start, 1.0, std)


class EdgeProjections(nn.Module):
    """``W_r`` of Eq. 8 for every edge type (or one for all), the same in every layer."""

    def __init__(self, edge_types: tuple[EdgeType, ...], width: int, heterogeneous: bool) -> None:
        super().__init__()
        self.index = {r: i if heterogeneous else 0 for i, r in enumerate(edge_types)}
        self.projections = nn.ModuleList(EdgeProjection(width) for _ in set(self.index.values()))

    def forward(self, edge_type: EdgeType, states: Tensor) -> Tensor:
        projection = self.projections[self.index[edge_type]]
        assert isinstance(projection, EdgeProjection)
        return project(projection, states)  # (..., d), Eq. 8


@dataclass(frozen=True)
class Neighborhoods:
    """What each centre's neighbours of one kind send it, and where in ``messages`` to find them.

    ``messages`` has h_{v_j -> v_i} of all edges for each layer, or once where layers do not differ. Of the
    rows [centres; messages], centre ``i`` attends to ``rows[i]``, itself first; where ``present`` is
    false the row is a stand-in.
    """

    messages: tuple[Tensor, ...]  # (E, d) each
    center: Tensor  # (E,) int64: whom each goes to
    edge_type: Tensor  # (E,) int64: by which edge type, counted within the kind
    rows: Tensor  # (B, 1 + F) int64, F the most neighbours that any centre has
    present: Tensor  # (B, 1 + F) bool

    @classmethod
    def from_edges(
        cls,
        centers: int,
        center: Tensor,
        messages: tuple[Tensor, ...],
        edge_type: Tensor | None = None,
    ) -> Neighborhoods:
        """Message ``e`` of every layer, (E, d) each, goes to centre ``center[e]`` by ``edge_type[e]``."""
        edge_type = torch.zeros_like(center) if edge_type is None else edge_type
        unordered = center
        order = torch.argsort(center, stable=True)
        center = center[order]
        degree = torch.bincount(center, minlength=centers)  # (B,)
        widest = int(degree.max()) if center.numel() else 0
        place = torch.arange(center.numel(), device=center.device) - (degree.cumsum(0) - degree)[center]
        rows = torch.zeros(centers, 1 + widest, dtype=torch.int64, device=center.device)
        rows[:, 0] = torch.arange(centers, device=center.device)
        rows[center, 1 + place] = centers + order
        present = torch.arange(1 + widest, device=center.device) <= degree[:, None]
        return cls(messages, unordered, edge_type, rows, present)

    def messages_at(self, depth: int) -> Tensor:
        """(E, d): those of the layer at ``depth``, counted from the PLM's first, which has none."""
        return self.messages[depth - 1 if len(self.messages) > 1 else 0]


class Aggregation(nn.Module):
    """Attention of a centre over its neighbours of one kind and itself, in one layer."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Parameter(torch.empty(width, width))  # W_Q
        self.key = nn.Parameter(torch.empty(width, width))  # W_K
        self.value = nn.Parameter(torch.empty(width, width))  # W_V

    def forward(self, center: Tensor, messages: Tensor, neighborhoods: Neighborhoods) -> Tensor:
        """(B, d) states of the centres and (E, d) messages to (B, d) virtual neighbour tokens.

        Centres are fewer than neighbours, so the projections are applied on their side of the products:
        ``(W_Q h)(W_K h') = (W_K W_Q h) h'`` and ``sum a (W_V h') = W_V sum a h'``, head by head.
        """
        key, value = (w.view(self.heads, -1, w.shape[1]) for w in (self.key, self.value))  # (k, d/k, d)
        query = F.linear(center, self.query).view(len(center), self.heads, -1)  # (B, k, d/k)
        query = torch.bmm(query.transpose(0, 1), key).transpose(0, 1)  # (B, k, d)
        entries = torch.cat([center, messages])  # (B + E, d): v_i is among its own neighbours, unprojected
        entries = entries.index_select(0, neighborhoods.rows.flatten()).view(*neighborhoods.rows.shape, -1)
        scores = self.scores(query, entries)  # (B, k, 1 + F)
        alpha = torch.softmax(scores.masked_fill(~neighborhoods.present[:, None], -math.inf), -1)
        mixture = torch.bmm(alpha, entries).transpose(0, 1)  # (k, B, d)
        return torch.bmm(mixture, value.mT).transpose(0, 1).flatten(1)  # (B, d), Eq. 6

    def scores(self, query: Tensor, entries: Tensor) -> Tensor:
        """(B, k, 1 + F): how much a centre looks at itself, which comes first, and its neighbours (Eq. 7)."""
        return torch.bmm(query, entries.mT) / math.sqrt(len(self.key) // self.heads)

    def initialize(self, start: str, std: float) -> None:
        """At the identity a token is a weighted mean of states, which the PLM can read from step one."""
        _start(self.query, start, 0.5, std)
        _start(self.key, start, 0.5, std)
        _start(self.value, start, 1.0, std)


def _start(weight: Tensor, start: str, scale: float, std: float) -> None:
    if start == "random":
        init.normal_(weight, mean=0.0, std=std)
    else:
        init.copy_(weight, scale * torch.eye(weight.shape[0], dtype=weight.dtype, device=weight.device))
