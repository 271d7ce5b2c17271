"""Layouts of all nodes: landmarks by t-SNE, the others beside those closest to them."""

from __future__ import annotations

import numpy as np
import pytest

from heterformer.errors import InputError
from heterformer.maps import landmarks
from heterformer.maps.landmarks import Landmarks, landmark_rows, lay_out
from heterformer.maps.options import MapOptions
from heterformer.maps.projection import NODES_AT_ONCE, project
from tests.maps.mapping import clusters, share_of_own

GROUPS = np.repeat(range(4), 60).tolist()


def test_nodes_that_are_no_landmarks_are_placed_in_their_cluster() -> None:
    places = lay_out({"paper": clusters(4, 60)}, ("paper",), MapOptions(), count=60)["paper"]
    assert places.shape == (240, 2)
    assert share_of_own(places, GROUPS) > 0.95
    assert len(np.unique(places, axis=0)) == 240  # each can be pointed at


def test_with_as_many_landmarks_as_nodes_it_is_the_tsne() -> None:
    vectors = clusters(3, 10)
    assert np.array_equal(lay_out({"paper": vectors}, ("paper",), MapOptions())["paper"], project(vectors))


def test_textless_nodes_stand_among_the_texts_closest_to_them() -> None:
    papers = clusters(4, 60)
    authors = papers[::3].copy()
    authors[:, -1] += 30  # what all authors share, and no paper has
    places = lay_out({"paper": papers, "author": authors}, ("paper",), MapOptions(), count=120)
    both = np.concatenate([places["paper"], places["author"]])
    assert share_of_own(both, [*GROUPS, *GROUPS[::3]]) > 0.9


def test_without_texts_all_types_are_laid_out() -> None:
    places = lay_out({"author": clusters(2, 20), "venue": clusters(2, 5)}, (), MapOptions(), count=25)
    assert {t: len(p) for t, p in places.items()} == {"author": 40, "venue": 10}
    assert all(np.isfinite(p).all() for p in places.values())


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_few_nodes(count: int) -> None:
    places = lay_out({"paper": np.eye(8)[:count], "venue": np.zeros((0, 8))}, ("paper",), MapOptions(), 3)
    assert places["paper"].shape == (count, 2)
    assert places["venue"].shape == (0, 2)
    assert np.isfinite(places["paper"]).all()


def test_landmarks_are_in_proportion_to_the_types() -> None:
    rows = landmark_rows({"paper": 9000, "book": 1000, "note": 1}, 100, seed=0)
    assert {t: len(r) for t, r in rows.items()} == {"paper": 90, "book": 10, "note": 1}
    assert all((np.diff(r) > 0).all() for r in rows.values())


def test_placing_looks_at_each_node_once_and_at_few_numbers_of_it() -> None:
    """The growth of what is computed: linear in nodes, whatever the vectors' width."""
    marks = Landmarks.from_vectors(clusters(4, 60, width=200), project(clusters(4, 60, width=200)))
    assert marks.reduced.shape == (240, landmarks.REDUCED)
    assert marks.near.shape == (240, landmarks.NEAR)

    class Counted(np.ndarray):  # type: ignore[type-arg]
        taken = 0

        def __getitem__(self, key: object) -> object:
            part = super().__getitem__(key)  # type: ignore[index]
            Counted.taken += len(part)
            return part

    vectors = clusters(4, NODES_AT_ONCE, width=200).view(Counted)
    landmarks._placed("paper", vectors, marks, 0)
    assert Counted.taken == len(vectors)


def test_the_same_layout_again() -> None:
    vectors = {"paper": clusters(3, 40)}
    one, other, third = (lay_out(vectors, ("paper",), MapOptions(seed=s), 50)["paper"] for s in (0, 0, 1))
    assert np.array_equal(one, other)
    assert not np.array_equal(one, third)


def test_a_broken_vector_is_named() -> None:
    vectors = clusters(2, 20)
    vectors[31, 3] = np.nan
    with pytest.raises(InputError, match="paper node 31 has a value that is NaN"):
        lay_out({"paper": vectors}, ("paper",), MapOptions(), count=40)
