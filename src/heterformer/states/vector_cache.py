"""Vectors of a model that several rankings need: each node is sampled and read once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from torch import Tensor

from heterformer.arrays import Ints
from heterformer.network.schema import NodeType
from heterformer.states.scratch_rows import ScratchRows

VectorsOf = Callable[[NodeType, Ints], Tensor]  # (n, d): of the nodes in some rows of a type


class VectorCache:
    """Computes a node's vector when it is first needed and reads it from a temporary file ever after.

    A node is query, key and candidate in one ranking.
    """

    def __init__(
        self, compute: VectorsOf, counts: Mapping[NodeType, int], folder: Path | None = None
    ) -> None:
        self._compute, self._counts, self._folder = compute, counts, folder
        self._known: dict[NodeType, ScratchRows] = {}

    def __call__(self, node_type: NodeType, rows: Ints) -> Tensor:
        """(n, d): the vectors of the nodes in ``rows``."""
        if node_type not in self._known:
            self._known[node_type] = ScratchRows(self._counts[node_type], self._folder)
        known = self._known[node_type]
        missing = known.missing(rows)
        if len(missing) == len(rows):  # all new and all different: no way round the disk is needed
            vectors = self._compute(node_type, rows)
            known.write(rows, vectors)
            return vectors
        known.write(missing, self._compute(node_type, missing))
        return known.read(rows)
