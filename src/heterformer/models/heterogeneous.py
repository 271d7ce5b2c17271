"""What models that look at textless nodes have in common."""

from __future__ import annotations

from torch import Tensor

from heterformer.batches.batch import Batch, TextlessCenters
from heterformer.models.contract import NodeEncoder
from heterformer.models.textless import TextlessNodes
from heterformer.network.schema import NodeType
from heterformer.network.store import Network


class HeterogeneousEncoder(NodeEncoder):
    """Base of the models that look at textless nodes: their embeddings are in ``textless.tables``."""

    textless: TextlessNodes

    @property
    def embedded_types(self) -> tuple[NodeType, ...]:
        """All of them, unless a model's options leave textless neighbours out."""
        return self.schema.text_rich + self.schema.textless

    @property
    def warms_up(self) -> bool:
        return bool(set(self.schema.textless) & set(self.embedded_types))

    def read_attributes(self, network: Network) -> None:
        self.textless.read_attributes(network)

    def textless_vectors(self, node_type: NodeType, rows: Tensor) -> Tensor:
        """(n, d): ``W_phi h^(0)`` (Eq. 9).

        Args:
            node_type: A textless type.
            rows: Rows of the type.
        """
        return self.maybe_normalize(self.textless(node_type, rows))

    def textless_center_vectors(self, batch: Batch, centers: TextlessCenters, states: Tensor) -> Tensor:
        return self.maybe_normalize(self.textless_starts(centers))

    def textless_starts(self, centers: TextlessCenters) -> Tensor:
        """(C, d): ``W_phi h^(0)`` of a batch's textless centres, from embeddings it carries or the table."""
        if centers.embeddings is not None:
            return self.textless.project(centers.node_type, centers.embeddings)
        starts: Tensor = self.textless(centers.node_type, centers.rows)
        return starts
