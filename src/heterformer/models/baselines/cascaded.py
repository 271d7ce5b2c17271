"""GNN-cascaded Transformers: a PLM reads every text, then one graph convolution mixes what it says.

Both train together. A text-rich node's vector is made of its own text's and its sampled neighbours'; the
convolution (``torch_geometric``'s) is what a model of this family adds, and how it starts.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from transformers import initialization as init

from heterformer.batches.batch import Batch, Neighbors, Texts
from heterformer.models.backbone_encoder import BackboneEncoder
from heterformer.models.configuration import NodeEncoderConfig
from heterformer.models.contract import NodeEncoder
from heterformer.models.heterogeneous import HeterogeneousEncoder
from heterformer.models.textless import TextlessNodes

TEXT_RICH = "text"  # torch_geometric's node type for all nodes with text


class CascadedEncoder(NodeEncoder):
    """Base of all that convolve vectors of texts, whatever reads the texts.

    Homogeneous: text-rich neighbours alone, whatever the edge type.
    """

    convolution: Any

    def __init__(self, config: NodeEncoderConfig) -> None:
        super().__init__(config)
        self.add_inputs()
        self.convolution = self.new_convolution(self.width)
        self.post_init()
        if config.aggregation_init == "identity":
            with torch.no_grad():
                self.start(self.convolution)

    @abstractmethod
    def add_inputs(self) -> None:
        """Make what turns nodes into the convolution's input vectors."""

    @abstractmethod
    def new_convolution(self, width: int) -> nn.Module:
        """The graph convolution, from vectors of ``width`` to vectors of ``width``."""

    @abstractmethod
    def start(self, convolution: Any) -> None:
        """Set the convolution's parameters so that it mixes vectors that are the PLM's still."""

    @abstractmethod
    def aggregate(self, centers: Tensor, neighbors: Tensor, batch: Batch) -> Tensor:
        """(B, d) vectors of the centres' own texts and (U, d) of the neighbour texts to (B, d) outputs."""

    @abstractmethod
    def text_vectors(self, texts: Texts, index: Tensor | None = None) -> Tensor:
        """(U, d): the vectors of ``texts`` (or of those at ``index``), each by itself."""

    @property
    def states_per_text(self) -> int:
        return 1

    @property
    def states_end_with_vector(self) -> bool:
        return True

    def text_states(self, texts: Texts) -> Tensor:
        """(U, 1, d): the texts' own vectors."""
        return self.text_vectors(texts)[:, None]

    def forward(self, batch: Batch, states: Tensor) -> Tensor:
        """(B, d): the centres' own vectors, convolved with their neighbours'."""
        centers = self.text_vectors(batch.texts, batch.centers)  # (B, d)
        return self.maybe_normalize(
            self.aggregate(centers, self.neighbor_vectors(batch, states[:, 0]), batch)
        )

    def encode_batch(self, batch: Batch) -> Tensor:
        """(B, d): the same with every text read once, be it centre, neighbour or both."""
        if batch.textless_centers is not None:
            return super().encode_batch(batch)
        vectors = self.text_vectors(batch.texts)  # (U, d)
        neighbors = self.neighbor_vectors(batch, vectors[: batch.neighbor_texts])
        return self.maybe_normalize(self.aggregate(vectors[batch.centers], neighbors, batch))

    def text_edges(self, batch: Batch) -> Tensor:
        """(2, E): from a row of the neighbour texts to a row of the centres; edge types are forgotten."""
        edges = [n for r, n in batch.neighbors.items() if r.neighbor in self.schema.text_rich]
        none = batch.centers[:0]
        node, center = torch.cat([none, *(n.node for n in edges)]), [none, *(n.center for n in edges)]
        return torch.stack([node, torch.cat(center)])


class CascadedPlm(BackboneEncoder, CascadedEncoder):
    """Base of the family: the texts are read by a PLM."""

    def add_inputs(self) -> None:
        self.add_backbone()


@dataclass(frozen=True)
class TypedEdges:
    """Neighbours of all kinds, and the edges by which they are seen."""

    sources: Tensor  # (N, d): the neighbour texts' vectors, then those of the textless nodes met
    index: Tensor  # (2, E): from a row of sources to a row of the centres
    kind: Tensor  # (E,): the edge type's number in the model's ``edge_types``


class HeterogeneousCascadedPlm(CascadedPlm, HeterogeneousEncoder):
    """The same with textless neighbours, which have embeddings of their own, and with typed edges.

    Textless nodes enter as ``W_phi h^(0)`` and are warmed up, like Heterformer's. All text-rich types count
    as one node type, since one PLM has brought them into one space; edge types tell them apart.
    """

    def add_inputs(self) -> None:
        super().add_inputs()
        self.edge_types = self.edge_types_from(self.schema.node_types)
        encodings = self.config.textless_encodings()
        self.textless = TextlessNodes(self.schema, self.config.textless_dim, self.width, True, encodings)

    @property
    def second_hop(self) -> int:
        return self.config.second_hop or 0

    def neighbor_vectors(self, batch: Batch, vectors: Tensor) -> Tensor:
        """(U, d): each neighbour convolved with its own neighbours, by the same convolution."""
        if not batch.second_hop or not self.second_hop:
            return vectors
        near = torch.unique(torch.cat([edges.center for edges in batch.second_hop.values()]))
        position = torch.full((len(vectors),), -1, device=vectors.device)
        position[near] = torch.arange(len(near), device=vectors.device)
        edges = {r: Neighbors(position[n.center], n.node) for r, n in batch.second_hop.items()}
        convolved = self.aggregate(vectors[near], vectors, replace(batch, neighbors=edges))
        return vectors.index_copy(0, near, convolved.to(vectors.dtype))

    def typed_edges(self, neighbors: Tensor, batch: Batch) -> TypedEdges:
        """All neighbours of the batch; ``neighbors`` (U, d) are the vectors of the neighbour texts."""
        offset, sources, count = dict.fromkeys(self.schema.text_rich, 0), [neighbors], len(neighbors)
        for node_type, rows in batch.textless.items():
            offset[node_type] = count
            sources.append(self.textless.of_batch(batch, node_type))  # (n, d)
            count += len(rows)
        index = [torch.stack([batch.centers[:0]] * 2)]
        kinds = [batch.centers[:0]]
        for number, r in enumerate(self.edge_types):
            if r in batch.neighbors:
                node, center = batch.neighbors[r].node, batch.neighbors[r].center  # (E_r,)
                index.append(torch.stack([node + offset[r.neighbor], center]))
                kinds.append(torch.full_like(center, number))
        return TypedEdges(torch.cat(sources), torch.cat(index, 1), torch.cat(kinds))


def with_self(edges: Tensor, centers: int) -> Tensor:
    """(2, B + E): the edges if the B centres' rows are put before the sources', each centre seeing itself."""
    itself = torch.arange(centers, device=edges.device)
    return torch.cat([itself.expand(2, -1), edges + edges.new_tensor([[centers], [0]])], 1)


def start_at_identity(weight: Tensor, scale: float = 1.0) -> None:
    """Start a square matrix, or each of several, at the identity."""
    eye = torch.eye(weight.shape[-1], dtype=weight.dtype, device=weight.device)
    init.copy_(weight, (scale * eye).expand_as(weight))


def start_attention(convolution: Any, std: float) -> None:
    """GAT's ``W`` at the identity, and an attention that hardly prefers anybody yet."""
    start_at_identity(convolution.lin.weight)
    for attention in (convolution.att_src, convolution.att_dst):
        init.normal_(attention, std=std)
