"""Vectors of textless nodes that no network has, made of the texts of their neighbours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heterformer.arrays import Ints
from heterformer.batches.assembly import SampledEdges, SecondHop, TextlessEnd, assemble
from heterformer.batches.visible import VisibleNetwork
from heterformer.errors import InputError
from heterformer.models.contract import NodeEncoder
from heterformer.models.heterogeneous import HeterogeneousEncoder
from heterformer.models.inference import evaluating, plm_vectors
from heterformer.models.known_nodes import KnownNodes
from heterformer.models.text_encoder import NeighborRows, TextEncoder
from heterformer.network.ids import known_rows
from heterformer.network.schema import EdgeType, NodeType
from heterformer.network.store import Network
from heterformer.network.tokens import PackedTokens
from heterformer.training.folding import FoldedIn, fold_in, length_factor, prior
from heterformer.training.unseen import known_sample, texts_next_to
from heterformer.training.warm_up import text_edges

MAX_TEXTS = 512  # that are read to learn how far out a type's embeddings lie

EdgesToTexts = Mapping[EdgeType, Sequence[int]]  # rows of a node's text-rich neighbours


class NewcomerEncoder:
    """Encodes textless nodes that are not in ``network`` but have neighbours there.

    Each is folded in as ``embed`` folds in the new nodes of a grown network. Nothing of the model changes.
    What is the same for all of them is computed for the first one and kept; one thread at a time.
    """

    def __init__(self, model: NodeEncoder, network: Network, max_texts: int = MAX_TEXTS) -> None:
        self.model, self.network, self.max_texts = model, network, max_texts
        self._factors: dict[NodeType, float] = {}

    def encode(self, node_type: NodeType, nodes: Sequence[EdgesToTexts]) -> NDArray[np.float32]:
        """(n, d): the vectors of some nodes of a textless type, each with its neighbours."""
        check_embedded(self.model, node_type)
        model = self._heterogeneous
        edges = [(place, e, _distinct(rows)) for place, node in enumerate(nodes) for e, rows in node.items()]
        none = np.empty(0, dtype=np.int64)
        places = np.concatenate([none, *(np.full(len(rows), place) for place, _, rows in edges)])
        texts = np.concatenate([none, *(rows + self._tokens.text_offset[e.neighbor] for _, e, rows in edges)])
        with evaluating(model):
            h0 = self._h0(node_type, FoldedIn(np.arange(len(nodes)), places, texts))
            end = TextlessEnd(node_type, np.zeros(len(nodes), dtype=np.int64), self._aggregated(nodes))
            batch = assemble(model.schema, self._tokens, none, (), end, self._second_hop)
            assert batch.textless_centers is not None
            centers = replace(batch.textless_centers, embeddings=h0)
            encoded = model.encode_batch(replace(batch, textless_centers=centers).to(model.device))
        vectors: NDArray[np.float32] = encoded.float().cpu().numpy()
        return vectors

    def _h0(self, node_type: NodeType, new: FoldedIn) -> Tensor:
        """(n, 64): as far from the mean as training would have taken the nodes, attributes unknown."""
        model, encoding = self._heterogeneous, self._heterogeneous.textless.encodings.get(node_type)
        attributes = None if encoding is None else encoding.missing(len(new.nodes))
        new = new._replace(attributes=attributes)
        rows = fold_in(model, node_type, new, self._tokens, self._known, self._known_vectors)
        mean, _ = prior(model, node_type, self._known)
        rows = mean + self._factor(node_type) * (rows - mean)
        if attributes is not None:
            rows += model.textless.attribute_offsets(node_type, attributes).float().cpu()
        return rows

    def _factor(self, node_type: NodeType) -> float:
        """``length_factor``, by nodes with so few texts that they are read while somebody waits."""
        if node_type not in self._factors:
            model, network = self._heterogeneous, self.network
            edges = text_edges(VisibleNetwork.whole(network), self._tokens, node_type)
            place = known_rows(network.id_series(node_type), self._known.ids[node_type])
            nodes = known_sample(network, node_type, np.flatnonzero(place >= 0), edges)
            texts = np.cumsum(np.bincount(edges.rows, minlength=len(place))[nodes])
            encoding = model.textless.encodings.get(node_type)
            attributes = None if encoding is None else encoding.read(network, node_type)
            sample = texts_next_to(edges, nodes[texts <= self.max_texts], attributes)
            table, _ = model.textless.parameters_of(node_type)
            learned = table.detach()[torch.from_numpy(place[sample.nodes])].float().cpu()
            measured = (model, node_type, sample, learned, self._tokens, self._known, self._known_vectors)
            self._factors[node_type] = float(length_factor(*measured))
        return self._factors[node_type]

    def _aggregated(self, nodes: Sequence[EdgesToTexts]) -> list[SampledEdges]:
        """The neighbours that are part of a vector besides, by the type: as many as the model aggregates."""
        most, sampled = self.model.textless_fan_out, []
        edge_types = self.model.schema.edge_types
        for edge_type in dict.fromkeys(e for node in nodes for e in node):
            number = edge_types.index(edge_type)
            rows = [_distinct(node.get(edge_type, ()))[:most] for node in nodes]
            neighbor = np.concatenate(rows).astype(np.int32)
            center = np.repeat(np.arange(len(nodes)), [len(each) for each in rows])
            of_type = np.full(len(neighbor), number, dtype=np.int16)
            sampled.append(
                SampledEdges(edge_type.neighbor, ((number, edge_type),), center, neighbor, of_type)
            )
        return sampled

    @property
    def _heterogeneous(self) -> HeterogeneousEncoder:
        assert isinstance(self.model, HeterogeneousEncoder)  # others have no vectors of textless nodes
        return self.model

    @cached_property
    def _second_hop(self) -> SecondHop | None:
        known = NeighborRows(self.model, self.network).of_network
        return TextEncoder(self.model, self.network, known_rows=known).second_hop

    @cached_property
    def _tokens(self) -> PackedTokens:
        return self.model.open_tokens(self.network)

    @cached_property
    def _known(self) -> KnownNodes:
        folder = self.model.folder
        if folder is None or (known := KnownNodes.open(folder)) is None:
            problem = "the model does not say which nodes training saw"
            raise InputError(f"{folder}: {problem}; train it again to embed nodes that it has not seen.")
        return known

    @cached_property
    def _known_vectors(self) -> Tensor:
        with evaluating(self.model):
            return plm_vectors(self.model, self._known.texts, np.arange(len(self._known.texts)))


def check_embedded(model: NodeEncoder, node_type: NodeType) -> None:
    """Refuse a type of which the model has no vectors: one without text, of a model that looks at texts."""
    if node_type not in model.embedded_types:
        name = model.config.options_class.display_name
        raise InputError(f"the model ({name}) has no vectors of {node_type!r} nodes, which have no text.")


def _distinct(rows: Sequence[int]) -> Ints:
    return np.unique(np.asarray(rows, dtype=np.int64))
