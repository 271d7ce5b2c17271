"""Adjacency: for each centre type and neighbour type, one compressed sparse row (CSR) structure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heterformer.arrays import AnyInts, bisect_rows, mapped


@dataclass(frozen=True)
class Adjacency:
    """The neighbours of one type of all centres of one type, over all edge types that join the two.

    Entries ``indptr[c]:indptr[c + 1]`` belong to centre ``c``, sorted by neighbour and then by edge
    type, so that all edges between two nodes are consecutive and found by bisection.
    """

    indptr: NDArray[np.int64]  # (centres + 1,)
    neighbor: NDArray[np.int32]  # (entries,)
    edge_type: NDArray[np.int16]  # (entries,) positions in Schema.edge_types

    @property
    def degrees(self) -> NDArray[np.int64]:
        return np.diff(self.indptr)

    def between(self, centers: AnyInts, nodes: AnyInts) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """For each (centre, node): the first entry that joins them and the one after the last."""
        lower = bisect_rows(self.neighbor, self.indptr[centers], self.indptr[centers + 1], nodes)
        upper = bisect_rows(self.neighbor, lower, self.indptr[centers + 1], nodes + 1)
        return lower, upper

    def joined(self, centers: AnyInts, nodes: AnyInts, edge_types: Sequence[int]) -> NDArray[np.bool_]:
        """Whether an edge of one of the types joins each (centre, node)."""
        return self.holds(*self.between(centers, nodes), edge_types)

    def holds(self, lower: AnyInts, upper: AnyInts, edge_types: Sequence[int]) -> NDArray[np.bool_]:
        """Whether each of several short ranges of entries contains an edge of one of the types."""
        result = np.zeros(lower.shape, dtype=bool)
        while (rest := np.flatnonzero(lower < upper)).size:  # as many rounds as edge types join two nodes
            for edge_type in edge_types:
                result[rest] |= self.edge_type[lower[rest]] == edge_type
            lower = lower + (lower < upper)
        return result

    def entries(self, edge_type: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """All edges of one type as (centres, neighbours), sorted."""
        keep = np.flatnonzero(self.edge_type == edge_type)
        return np.searchsorted(self.indptr, keep, side="right") - 1, self.neighbor[keep]

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        for name in ("indptr", "neighbor", "edge_type"):
            np.save(folder / f"{name}.npy", getattr(self, name), allow_pickle=False)

    @classmethod
    def open(cls, folder: Path) -> Adjacency:
        """Open memory-mapped: nothing is read until it is used."""
        return cls(*(mapped(folder / f"{name}.npy") for name in ("indptr", "neighbor", "edge_type")))

    def fits(self, centers: int) -> bool:
        """Whether types and lengths are those of an adjacency of so many centres; contents are not read."""
        arrays = (self.indptr, self.neighbor, self.edge_type)
        kinds = tuple((array.dtype.kind, array.dtype.itemsize, array.ndim) for array in arrays)
        if kinds != (("i", 8, 1), ("i", 4, 1), ("i", 2, 1)) or len(self.indptr) != centers + 1:
            return False
        entries = len(self.neighbor)
        return bool(self.indptr[0] == 0 and self.indptr[-1] == entries == len(self.edge_type))

    @classmethod
    def from_edges(
        cls, edges: Sequence[tuple[int, AnyInts, AnyInts]], centers: int, neighbors: int, edge_types: int
    ) -> Adjacency:
        """Merge lists of (edge type, centre rows, neighbour rows); a list must not have duplicates."""
        keys = np.empty(sum(len(c) for _, c, _ in edges), dtype=np.int64)
        start = 0
        for edge_type, center, neighbor in edges:
            part = keys[start : start + len(center)]
            np.multiply(center, neighbors, out=part, dtype=np.int64)
            part += neighbor
            part *= edge_types
            part += edge_type
            start += len(center)
        keys.sort()  # one key per entry: sorting it sorts by centre, neighbour and edge type at once
        edge_type_of = (keys % edge_types).astype(np.int16)
        keys //= edge_types
        neighbor_of = (keys % neighbors).astype(np.int32)
        keys //= neighbors
        indptr = np.zeros(centers + 1, dtype=np.int64)
        np.cumsum(np.bincount(keys, minlength=centers), out=indptr[1:])
        return cls(indptr, neighbor_of, edge_type_of)
