"""The neighbourhoods that an embedding samples: each node's once, kept on disk part by part.

Which texts are needed, what a vector is made of (its signature) and the vector itself come from one sample.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heterformer.arrays import Ints
from heterformer.batches.assembly import SampledEdges
from heterformer.batches.batcher import Batcher, SampledNodes
from heterformer.batches.sampling import Sampler
from heterformer.files import reading, replace_file
from heterformer.network.schema import NodeType

FOLDER = "neighborhoods"
AGAIN = "remove its folder and start again"


class SampledParts:
    """Parts of the text-rich nodes with their sampled neighbours, in a work folder that survives kills."""

    def __init__(self, folder: Path, batcher: Batcher, sampler: Sampler) -> None:
        self.folder, self.batcher, self.sampler = folder / FOLDER, batcher, sampler
        self.folder.mkdir(exist_ok=True)

    def part(self, node_type: NodeType, start: int, stop: int) -> SampledNodes:
        """The nodes in the rows from ``start`` to ``stop``; sampled and stored the first time."""
        path = self.folder / f"{node_type}.{start}-{stop}.npz"
        rows = np.arange(start, stop)
        if not path.exists():
            self._store(path, self.batcher.sample(node_type, rows, self.sampler))
        return self._stored(path, node_type, rows)

    def _store(self, path: Path, nodes: SampledNodes) -> None:
        arrays: dict[str, NDArray[Any]] = {}
        for number, edges in enumerate(nodes.edges):
            # Edges are ordered by centre: how many each has says whose they are.
            counts = np.bincount(edges.center, minlength=len(nodes)).astype(np.int32)
            arrays |= {f"counts{number}": counts, f"neighbor{number}": edges.neighbor}
            arrays |= {f"edge_type{number}": edges.edge_type}
        with replace_file(path) as partial, partial.open("wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]

    def _stored(self, path: Path, node_type: NodeType, rows: Ints) -> SampledNodes:
        with reading(path, AGAIN), np.load(path, allow_pickle=False) as arrays:
            edges = tuple(
                SampledEdges(
                    neighbor_type,
                    self.batcher.edge_types(node_type, neighbor_type),
                    np.repeat(np.arange(len(rows)), arrays[f"counts{number}"]),
                    arrays[f"neighbor{number}"],
                    arrays[f"edge_type{number}"],
                )
                for number, neighbor_type in enumerate(self.batcher.neighbor_types(node_type))
            )
        return SampledNodes(node_type, rows, edges, self.sampler)
