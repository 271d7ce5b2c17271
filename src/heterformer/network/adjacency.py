"""Adjacency: for each centre type and neighbour type, one compressed sparse row (CSR) structure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from heterformer.arrays import AnyInts, bisect_rows
from heterformer.files import damaged
from heterformer.stored import NUMBERS_AT_ONCE, check_offsets, check_range, map_array

REBUILD = "build the network again"
KINDS = {"indptr": "i8", "neighbor": "i4", "edge_type": "i2", "weight": "f4", "time": "f8"}
OPTIONAL = ("weight", "time")


@dataclass(frozen=True)
class Adjacency:
    """The neighbours of one type of all centres of one type, over all edge types that join the two.

    Entries ``indptr[c]:indptr[c + 1]`` belong to centre ``c``, sorted by neighbour and then by edge
    type, so that all edges between two nodes are consecutive and found by bisection.
    """

    indptr: NDArray[np.int64]  # (centres + 1,)
    neighbor: NDArray[np.int32]  # (entries,)
    edge_type: NDArray[np.int16]  # (entries,) positions in Schema.edge_types
    weight: NDArray[np.float32] | None = None  # (entries,), 1 where a relation has none; None if all are 1
    time: NDArray[np.float64] | None = None  # (entries,), NaN where a relation has none; None if none has

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
        keep = self.positions(edge_type)
        return np.searchsorted(self.indptr, keep, side="right") - 1, self.neighbor[keep]

    def positions(self, edge_type: int) -> NDArray[np.int64]:
        """Where the edges of one type are, in the order of ``entries``."""
        return np.flatnonzero(self.edge_type == edge_type)

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        for name in KINDS:
            if (array := getattr(self, name)) is not None:
                np.save(folder / f"{name}.npy", array, allow_pickle=False)

    @classmethod
    def open(cls, folder: Path, centers: int, neighbors: int, edge_types: Sequence[int]) -> Adjacency:
        """Open memory-mapped, given the counts of centres and neighbours and the numbers of their edge types.

        Lengths, offsets and ranges are checked, so that no entry leads out of another array; the order of
        entries is not (see ``check_order``).
        """
        paths = {name: folder / f"{name}.npy" for name in KINDS}
        there = {name: path for name, path in paths.items() if name not in OPTIONAL or path.exists()}
        adjacency = cls(**{name: map_array(path, REBUILD, KINDS[name]) for name, path in there.items()})
        entries = len(adjacency.neighbor)
        for name, path in there.items():
            length, expected = len(getattr(adjacency, name)), centers + 1 if name == "indptr" else entries
            if length != expected:
                raise damaged(path, f"it has {length:,} numbers, expected {expected:,}", REBUILD)
        check_offsets(adjacency.indptr, entries, paths["indptr"], REBUILD)
        check_range(adjacency.neighbor, 0, neighbors, paths["neighbor"], REBUILD)
        check_range(adjacency.edge_type, min(edge_types), max(edge_types) + 1, paths["edge_type"], REBUILD)
        return adjacency

    def check_order(self, folder: Path, edge_types: Sequence[int]) -> None:
        """Refuse entries of a centre that are not sorted by neighbour and edge type, or are duplicates."""
        if not np.isin(np.unique(self.edge_type), edge_types).all():
            raise damaged(folder / "edge_type.npy", "found an edge type of other nodes", REBUILD)
        for start in range(1, len(self.neighbor), NUMBERS_AT_ONCE):
            stop = min(start + NUMBERS_AT_ONCE, len(self.neighbor))
            later, earlier = slice(start, stop), slice(start - 1, stop - 1)
            ascends = self.neighbor[later] > self.neighbor[earlier]
            same = self.neighbor[later] == self.neighbor[earlier]
            ascends |= same & (self.edge_type[later] > self.edge_type[earlier])
            first, last = np.searchsorted(self.indptr, (start, stop))
            ascends[self.indptr[first:last] - start] = True  # the first entry of a centre
            if not ascends.all():
                entry = start + int(ascends.argmin())
                raise damaged(folder / "neighbor.npy", f"number {entry:,} is out of order", REBUILD)

    @classmethod
    def from_edges(
        cls,
        edges: Sequence[tuple[int, AnyInts, AnyInts]],
        centers: int,
        neighbors: int,
        edge_types: int,
        weights: Sequence[NDArray[Any] | None] = (),
        times: Sequence[NDArray[Any] | None] = (),
    ) -> Adjacency:
        """Merge lists of (edge type, centre rows, neighbour rows); a list must not have duplicates.

        ``weights`` and ``times`` are those of each list, None for a list without.
        """
        keys = np.empty(sum(len(c) for _, c, _ in edges), dtype=np.int64)
        start = 0
        for edge_type, center, neighbor in edges:
            part = keys[start : start + len(center)]
            np.multiply(center, neighbors, out=part, dtype=np.int64)
            part += neighbor
            part *= edge_types
            part += edge_type
            start += len(center)
        weight = _joined_values(edges, weights, 1.0, np.float32)
        time = _joined_values(edges, times, np.nan, np.float64)
        if weight is not None or time is not None:
            order = np.argsort(keys)
            weight = None if weight is None else weight[order]
            time = None if time is None else time[order]
        keys.sort()  # one key per entry: sorting it sorts by centre, neighbour and edge type at once
        edge_type_of = (keys % edge_types).astype(np.int16)
        keys //= edge_types
        neighbor_of = (keys % neighbors).astype(np.int32)
        keys //= neighbors
        indptr = np.zeros(centers + 1, dtype=np.int64)
        np.cumsum(np.bincount(keys, minlength=centers), out=indptr[1:])
        return cls(indptr, neighbor_of, edge_type_of, weight, time)


def _joined_values(
    edges: Sequence[tuple[int, AnyInts, AnyInts]],
    values: Sequence[NDArray[Any] | None],
    default: float,
    dtype: DTypeLike,
) -> NDArray[Any] | None:
    """The values of all lists end to end, ``default`` for lists without; None if no list has any."""
    if all(part is None for part in values):
        return None
    parts = zip(edges, values, strict=True)
    return np.concatenate(
        [np.full(len(e[1]), default, dtype) if part is None else part.astype(dtype) for e, part in parts]
    )
