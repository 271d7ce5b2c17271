"""Stand-in: vectors of a whole network as a folder of NumPy arrays and lists of ids."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heterformer.errors import InputError
from heterformer.network.schema import NodeType


class Vectors:
    """Vectors that were written to a folder."""

    def __init__(self, path: Path, types: tuple[NodeType, ...]) -> None:
        self.path, self.types = path, types

    @classmethod
    def open(cls, path: Path | str) -> Vectors:
        """Open a folder of vectors."""
        path = Path(path)
        try:
            return cls(path, tuple(json.loads((path / "vectors.json").read_text())["types"]))
        except (OSError, ValueError):
            raise InputError(f"{path}: holds no vectors, expected what 'heterformer embed' wrote.") from None

    def matrix(self, node_type: NodeType) -> NDArray[Any]:
        """(n, d)."""
        self._check(node_type)
        return np.asarray(np.load(self.path / f"{node_type}.npy", mmap_mode="r", allow_pickle=False))

    def ids(self, node_type: NodeType) -> list[str]:
        """The ids, in the order of the vectors."""
        self._check(node_type)
        return (self.path / f"{node_type}.ids.txt").read_text(encoding="utf-8").split("\n")[:-1]

    def _check(self, node_type: NodeType) -> None:
        if node_type not in self.types:
            known = ", ".join(map(repr, self.types))
            raise InputError(f"{self.path}: has no vectors of type {node_type!r}, the types are {known}.")
