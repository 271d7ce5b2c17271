"""Encodes query texts, which are no nodes of the network, with a run's model."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from heterformer.device import Device, chosen_device
from heterformer.models.text_encoder import TextEncoder
from heterformer.network.lookup import Node
from heterformer.network.schema import NodeType
from heterformer.network.store import Network
from heterformer.search.index import Matrix
from heterformer.training.run import Run


class QueryEncoder:
    """Encodes a text alone, the paper's setting, or with nodes of the network as its neighbours.

    Of textless nodes only the embeddings of a query's own neighbours are read, from ``h0`` of their type.
    """

    def __init__(
        self, run: Run, network: Network, h0: Callable[[NodeType], Matrix], device: Device = "auto"
    ) -> None:
        model = run.model(tables=False).to(chosen_device(device))
        self.encoder = TextEncoder(model, network, embeddings=lambda node_type, rows: h0(node_type)[rows])

    def encode(self, text: str, neighbors: Sequence[Node] = ()) -> NDArray[np.float32]:
        """(d,): the vector of a node of the predicted relation's source type with this text."""
        rows: dict[NodeType, list[int]] = {}
        for node in neighbors:
            rows.setdefault(node.node_type, []).append(node.row)
        vector: NDArray[np.float32] = self.encoder.encode([text], [rows])[0]
        return vector
