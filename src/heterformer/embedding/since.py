"""Vectors from an earlier embedding that are still true."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from heterformer.arrays import Ints
from heterformer.embedding.vectors import Vectors
from heterformer.errors import InputError, OptionError
from heterformer.network.hashes import Hashes
from heterformer.network.ids import known_rows
from heterformer.network.schema import NodeType
from heterformer.network.store import Network


class EarlierVectors:
    """An earlier output of ``embed`` under the same model and settings, looked up by id."""

    def __init__(
        self, path: Path, settings: dict[str, Any], network: Network, types: Sequence[NodeType], dim: int
    ) -> None:
        """Nothing but vectors and short embeddings of the width ``dim`` is left to be read later."""
        try:
            self.old = Vectors.open(path)
        except InputError as error:
            raise OptionError(None, "since", str(error)) from None
        for name, now in {"width": None, **settings}.items():  # which whole vectors do not note
            before = self.old.metadata.get(name)
            if before != now:
                words = {"model": "another model", "fan_out": "another number of neighbours"}
                words["width"] = "another width"
                what = words.get(name, f"{name} {before}, not {now}")
                raise OptionError(None, "since", f"{path}: was made with {what}; leave {{since}} out.")
        self._place: dict[NodeType, Ints] = {}  # where each node of the network is in the earlier output
        self._old_signatures: dict[NodeType, Hashes] = {}
        self._matrices: dict[NodeType, NDArray[Any]] = {}
        self._h0: dict[NodeType, NDArray[Any]] = {}
        self._dim = dim
        for node_type in (t for t in types if t in self.old.types):
            try:
                ids = pl.Series("id", self.old.ids(node_type), dtype=pl.String)
                self._place[node_type] = known_rows(network.id_series(node_type), ids)
                self._old_signatures[node_type] = self.old.signatures(node_type)
            except InputError as error:
                raise OptionError(None, "since", f"{error} Leave {{since}} out.") from None

    @property
    def digest(self) -> str:
        """Something that changes when the earlier output does."""
        files = sorted(self.old.path.iterdir()) if self.old.path.is_dir() else [self.old.path]
        stats = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files]
        return hashlib.blake2b(repr(stats).encode(), digest_size=16).hexdigest()

    def unpack(self, folder: Path) -> None:
        """Before any vector is asked for: what a table holds packed goes into ``folder``, once."""
        for node_type in self._place:
            self._matrices[node_type] = self.old.mapped_matrix(node_type, folder)
            if self.old.has_h0(node_type) and self.old.h0_width(node_type) == self._dim:
                self._h0[node_type] = self.old.mapped_matrix(node_type, folder, "h0")

    def holds(self, node_type: NodeType, rows: Ints, signatures: Hashes) -> NDArray[np.bool_]:
        """Whether each node is there and has been made of the same."""
        if node_type not in self._place:
            return np.zeros(len(rows), dtype=bool)
        place = self._place[node_type][rows]
        same: NDArray[np.bool_] = (place >= 0) & (self._old_signatures[node_type][place] == signatures)
        return same

    def vectors(self, node_type: NodeType, rows: Ints) -> NDArray[Any]:
        """(n, d): the vectors of nodes that are there."""
        return self._matrices[node_type][self._place[node_type][rows]]

    def holds_h0(self, node_type: NodeType, rows: Ints, signatures: Hashes) -> NDArray[np.bool_]:
        """Whether each node's short embedding is there, made of the same."""
        if node_type not in self._h0:
            return np.zeros(len(rows), dtype=bool)
        return self.holds(node_type, rows, signatures)

    def h0(self, node_type: NodeType, rows: Ints) -> NDArray[Any]:
        """(n, 64): the short embeddings of textless nodes that are there."""
        return self._h0[node_type][self._place[node_type][rows]]
