"""Encodes query texts, which are no nodes of the network, with a run's model or its student."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from heterformer.device import Device, chosen_device
from heterformer.errors import InputError
from heterformer.models.student import Student
from heterformer.models.text_encoder import TextEncoder
from heterformer.network.lookup import Node
from heterformer.network.schema import NodeType
from heterformer.network.store import Network
from heterformer.search.index import Matrix
from heterformer.search.run_weights import RunWeights
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

    @property
    def temperature(self) -> float:
        """Inner products divided by it are logs of how much likelier than usual a link is."""
        return float(self.encoder.model.config.temperature)

    def encode(self, text: str, neighbors: Sequence[Node] = ()) -> NDArray[np.float32]:
        """(d,): the vector of a node of the schema's ``query_type`` with this text."""
        rows: dict[NodeType, list[int]] = {}
        for node in neighbors:
            rows.setdefault(node.node_type, []).append(node.row)
        vector: NDArray[np.float32] = self.encoder.encode([text], [rows])[0]
        return vector

    def shortened(self, vector: NDArray[np.float32], width: int) -> NDArray[np.float32]:
        """(width,): a vector as ``embed`` cuts those of nodes."""
        cut: NDArray[np.float32] = self.encoder.model.shortened(torch.from_numpy(vector), width).numpy()
        return cut


class StudentQueryEncoder:
    """Encodes a text alone, with an encoder that was distilled from the run's model."""

    def __init__(self, folder: Path | str, run: Run, device: Device = "auto") -> None:
        self.folder, self.student = folder, Student.open(folder)
        if self.student.about.get("weights") != RunWeights(run).model:
            problem = "was distilled from another model, whose vectors do not compare with this run's"
            raise InputError(f"{folder}: {problem}; run 'heterformer distill {run.path} OUT'.")
        self.student.plm.to(chosen_device(device))

    def encode(self, text: str, neighbors: Sequence[Node] = ()) -> NDArray[np.float32]:
        """(d,): the vector of the text."""
        if neighbors:
            problem = "reads texts alone, but neighbours of the query are given"
            raise InputError(f"{self.folder}: {problem}; leave them out, or search without a student.")
        return self.student.encode(text)
