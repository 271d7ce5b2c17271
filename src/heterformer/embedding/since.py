"""Vectors from an earlier embedding that are still true."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from heterformer.batches.sampling import Ints
from heterformer.embedding.vectors import Vectors
from heterformer.errors import InputError
from heterformer.network.hashes import Hashes
from heterformer.network.ids import known_rows
from heterformer.network.schema import NodeType
from heterformer.network.store import Network


class Since:
    """An earlier output of ``embed`` under the same model and settings, looked up by id."""

    def __init__(self, path: Path, settings: dict[str, Any], network: Network) -> None:
        self.old, self.network = Vectors.open(path), network
        for name, now in settings.items():
            before = self.old.metadata.get(name)
            if before != now:
                words = {"model": "another model", "fan_out": "another number of neighbours"}
                what = words.get(name, f"{name} {before}, not {now}")
                raise InputError(f"--since {path}: was made with {what}; leave --since out.")
        # Of each type: where each node of the network is in the earlier output, its signatures, its vectors.
        self._known: dict[NodeType, tuple[Ints, Hashes, NDArray[Any]]] = {}
        self._h0: dict[NodeType, NDArray[Any]] = {}  # if they were written

    @property
    def digest(self) -> str:
        """Something that changes when the earlier output does."""
        files = sorted(self.old.path.iterdir()) if self.old.path.is_dir() else [self.old.path]
        stats = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files]
        return hashlib.blake2b(repr(stats).encode(), digest_size=16).hexdigest()

    def unpack(self, folder: Path, types: Sequence[NodeType]) -> None:
        """Before anything is asked for: what a table holds packed goes into ``folder``, once."""
        for node_type in types:
            if node_type in self.old.types:
                ids = pl.Series("id", self.old.ids(node_type), dtype=pl.String)
                place = known_rows(self.network.id_series(node_type), ids)
                matrix = self.old.mapped_matrix(node_type, folder)
                self._known[node_type] = (place, self.old.signatures(node_type), matrix)
                if self.old.has_h0(node_type):
                    self._h0[node_type] = self.old.mapped_matrix(node_type, folder, "h0")

    def holds(self, node_type: NodeType, rows: Ints, signatures: Hashes) -> NDArray[np.bool_]:
        """Whether each node is there and has been made of the same."""
        if node_type not in self.old.types:
            return np.zeros(len(rows), dtype=bool)
        place, old, _ = self._known[node_type]
        same: NDArray[np.bool_] = (place[rows] >= 0) & (old[place[rows]] == signatures)
        return same

    def vectors(self, node_type: NodeType, rows: Ints) -> NDArray[Any]:
        """(n, d): the vectors of nodes that are there."""
        place, _, matrix = self._known[node_type]
        return matrix[place[rows]]

    def holds_h0(self, node_type: NodeType, rows: Ints, signatures: Hashes) -> NDArray[np.bool_]:
        """Whether each node's short embedding is there, made of the same."""
        if node_type not in self._h0:
            return np.zeros(len(rows), dtype=bool)
        return self.holds(node_type, rows, signatures)

    def h0(self, node_type: NodeType, rows: Ints) -> NDArray[Any]:
        """(n, 64): the short embeddings of textless nodes that are there."""
        place, _, _ = self._known[node_type]
        return self._h0[node_type][place[rows]]
