"""Compressed sparse rows against loops over the edges."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from heterformer.network.adjacency import Adjacency
from tests.networks import few

CENTERS, NODES, EDGE_TYPES = 5, 6, 3
EDGE = st.tuples(st.integers(0, CENTERS - 1), st.integers(0, NODES - 1), st.integers(0, EDGE_TYPES - 1))
EDGES = st.sets(EDGE, max_size=40)
EVERY = np.array([(c, n) for c in range(CENTERS) for n in range(NODES)])


def built(edges: set[tuple[int, int, int]]) -> Adjacency:
    parts = []
    for number in range(EDGE_TYPES):
        of_type = np.array([(c, n) for c, n, t in edges if t == number], dtype=np.int32).reshape(-1, 2)
        parts.append((number, of_type[:, 0], of_type[:, 1]))
    return Adjacency.from_edges(parts, CENTERS, NODES, EDGE_TYPES)


@few
@given(EDGES)
def test_entries_are_the_edges_by_centre_then_neighbour_then_type(edges: set[tuple[int, int, int]]) -> None:
    adjacency = built(edges)
    centers = np.repeat(np.arange(CENTERS), adjacency.degrees)
    found = zip(centers.tolist(), adjacency.neighbor.tolist(), adjacency.edge_type.tolist(), strict=True)
    assert list(found) == sorted(edges)
    for number in range(EDGE_TYPES):
        center, neighbor = adjacency.entries(number)
        expected = sorted((c, n) for c, n, t in edges if t == number)
        assert list(zip(center.tolist(), neighbor.tolist(), strict=True)) == expected


@few
@given(EDGES)
def test_between_finds_all_edges_that_join_two_nodes(edges: set[tuple[int, int, int]]) -> None:
    adjacency = built(edges)
    lower, upper = adjacency.between(EVERY[:, 0], EVERY[:, 1])
    for (center, node), start, stop in zip(EVERY.tolist(), lower, upper, strict=True):
        expected = sorted(t for c, n, t in edges if (c, n) == (center, node))
        assert adjacency.edge_type[start:stop].tolist() == expected
        assert adjacency.indptr[center] <= start <= stop <= adjacency.indptr[center + 1]


@few
@given(EDGES, st.sets(st.integers(0, EDGE_TYPES - 1)))
def test_joined_asks_for_some_edge_types(edges: set[tuple[int, int, int]], asked: set[int]) -> None:
    joined = built(edges).joined(EVERY[:, 0], EVERY[:, 1], sorted(asked))
    assert joined.tolist() == [any((c, n, t) in edges for t in asked) for c, n in EVERY.tolist()]


def test_what_is_saved_is_opened_memory_mapped(tmp_path: Path) -> None:
    saved = built({(0, 1, 2), (4, 5, 0)})
    saved.save(tmp_path / "paper--author")
    opened = Adjacency.open(tmp_path / "paper--author", CENTERS, NODES, range(EDGE_TYPES))
    for name in ("indptr", "neighbor", "edge_type"):
        array = getattr(opened, name)
        np.testing.assert_array_equal(array, getattr(saved, name))
        assert array.dtype == getattr(saved, name).dtype
        assert isinstance(array.base, np.memmap)
