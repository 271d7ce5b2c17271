"""Vectors of a model that several rankings need: each node is sampled and read once."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heterformer.arrays import Ints
from heterformer.errors import InputError
from heterformer.network.schema import NodeType

VectorsOf = Callable[[NodeType, Ints], Tensor]  # (n, d): of the nodes in some rows of a type


class VectorCache:
    """Computes a node's vector when it is first needed and reads it from a temporary file ever after.

    A node is query, key and candidate in one ranking. The file has no name, so that it is gone with the
    process; memory holds a byte for each node.
    """

    def __init__(
        self, compute: VectorsOf, counts: Mapping[NodeType, int], folder: Path | None = None
    ) -> None:
        self._compute, self._counts, self._folder = compute, counts, folder
        self._files: dict[NodeType, IO[bytes]] = {}
        self._is_known: dict[NodeType, NDArray[np.bool_]] = {}

    def __call__(self, node_type: NodeType, rows: Ints) -> Tensor:
        """(n, d): the vectors of the nodes in ``rows``."""
        if node_type not in self._files:
            self._files[node_type] = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115 - as long as self
            self._is_known[node_type] = np.zeros(self._counts[node_type], dtype=bool)
        missing = np.unique(rows[~self._is_known[node_type][rows]])
        if len(missing) == len(rows):  # all new and all different: no way round the disk is needed
            vectors = self._compute(node_type, rows)
            self._write(node_type, rows, vectors)
            return vectors
        computed = self._compute(node_type, missing)
        self._write(node_type, missing, computed)
        return self._read(node_type, rows, computed.shape[1])

    def _write(self, node_type: NodeType, rows: Ints, vectors: Tensor) -> None:
        values, file = vectors.float().numpy(), self._files[node_type].fileno()
        try:
            for row, value in zip(rows.tolist(), values, strict=True):
                os.pwrite(file, value.tobytes(), row * value.nbytes)
        except OSError as error:
            place = self._folder or tempfile.gettempdir()
            raise InputError(f"{place}: vectors cannot be stored ({error.strerror}).") from error
        self._is_known[node_type][rows] = True

    def _read(self, node_type: NodeType, rows: Ints, width: int) -> Tensor:
        file, size = self._files[node_type].fileno(), 4 * width
        data = b"".join(os.pread(file, size, row * size) for row in rows.tolist())
        return torch.from_numpy(np.frombuffer(data, dtype=np.float32).reshape(len(rows), width).copy())
