from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.manifold import TSNE
from threadpoolctl import threadpool_info, threadpool_limits

from heterformer.errors import InputError
from heterformer.maps.options import MapOptions
from heterformer.maps.projection import ITERATIONS, expected_seconds, place_among, project
from tests.maps.mapping import clusters, share_of_own


def test_the_time_of_a_large_map_is_estimated_from_a_small_one() -> None:
    """By n log n, as t-SNE is."""
    moments = iter((5.0, 7.0))
    seconds = expected_seconds(1000, 4, MapOptions(), sample=10, clock=lambda: next(moments))
    assert seconds == pytest.approx(2 * 100 * 3)


def test_planted_clusters_stay_together() -> None:
    places = project(clusters(4, 30))
    assert places.shape == (120, 2)
    assert share_of_own(places, np.repeat(range(4), 30).tolist()) > 0.95


def test_only_directions_count() -> None:
    vectors = clusters(2, 20)
    longer = vectors * 2.0 ** np.arange(-20, 20)[:, None]  # a power of two leaves directions as they are
    assert np.array_equal(project(vectors), project(longer))


def test_the_same_picture_again() -> None:
    vectors = clusters(3, 20)
    found = project(vectors)
    assert np.array_equal(found, project(vectors))
    assert not np.array_equal(found, project(vectors, MapOptions(seed=1)))


def test_iterations_are_told_and_change_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    vectors, moves = clusters(3, 20), list[int]()
    assert np.array_equal(project(vectors, advance=moves.append), project(vectors))
    assert sum(moves) == ITERATIONS
    assert len(moves) > 5
    assert min(moves) > 0
    assert capsys.readouterr().out == ""


def test_without_iterations_all_are_told_at_once() -> None:
    moves: list[int] = []
    project(np.eye(3), advance=moves.append)
    assert moves == [ITERATIONS]


def test_one_thread_whatever_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """With several, sums round differently from time to time, and t-SNE makes that a different picture."""
    threads = []

    def noted(self: TSNE, vectors: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        threads.extend(library["num_threads"] for library in threadpool_info())
        return vectors[:, :2]

    monkeypatch.setattr(TSNE, "fit_transform", noted)
    with threadpool_limits(limits=2):
        project(clusters(3, 20))
    assert set(threads) == {1}


def test_perplexity_makes_a_difference() -> None:
    one, other = (project(clusters(3, 20), MapOptions(perplexity=p)) for p in (5, 15))
    assert not np.allclose(one, other)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 8])
def test_few_nodes(count: int) -> None:
    vectors = np.eye(8)[:count]
    places = project(vectors, MapOptions(perplexity=50))
    assert places.shape == (count, 2)
    assert np.isfinite(places).all()
    assert len(np.unique(places.round(3), axis=0)) == count


def test_three_nodes_keep_their_distances() -> None:
    vectors = np.array([[1, 0, 0], [0, 2, 0], [0, 1, 1]])
    places = project(vectors)
    assert np.linalg.norm(places[0] - places[1]) == pytest.approx(2**0.5)
    assert np.linalg.norm(places[1] - places[2]) == pytest.approx((2 - 2**0.5) ** 0.5, rel=1e-5)


@pytest.mark.parametrize("vectors", [np.ones((30, 4)), np.zeros((30, 4)), np.arange(30)[:, None] - 9.5])
def test_vectors_that_say_little(vectors: np.ndarray[Any, Any]) -> None:
    places = project(vectors)
    assert np.isfinite(places).all()
    assert len(np.unique(places, axis=0)) == 30  # each can be pointed at


def test_half_precision() -> None:
    vectors = clusters(2, 20).astype(np.float16)
    assert share_of_own(project(vectors), np.repeat(range(2), 20).tolist()) > 0.95


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_none(value: float) -> None:
    vectors = np.ones((5, 3), dtype=np.float32)
    vectors[3, 1] = value
    with pytest.raises(InputError, match="vector 3 has a value that is NaN or infinite"):
        project(vectors)


def test_nodes_of_another_type_stand_among_those_they_resemble() -> None:
    groups = np.repeat(range(3), 30).tolist()
    others, vectors = clusters(3, 30), clusters(3, 30, seed=1)
    places = project(others)
    found = place_among(vectors, others, places)
    assert found.shape == (90, 2)
    assert np.array_equal(found, place_among(vectors, others, places))
    assert share_of_own(np.concatenate([places, found]), groups * 2) > 0.95
    assert len(np.unique(np.concatenate([places, found]), axis=0)) == 180  # none upon another


def test_one_stray_among_the_closest_does_not_pull_a_node_away() -> None:
    others = np.array([[1, 0.1], [1, 0.2], [1, 0.3], [1, 0.0], [0, 1]])
    places = np.array([[0, 0], [0, 1], [1, 0], [100, 100], [50, 50]], dtype=np.float32)
    (found,) = place_among(np.array([[1, 0]]), others, places, MapOptions())
    assert np.abs(found).max() < 10


@pytest.mark.parametrize("count", [1, 2])
def test_among_few_others(count: int) -> None:
    places = project(np.eye(3)[:count])
    assert np.isfinite(place_among(np.eye(3), np.eye(3)[:count], places)).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_nodes": 0}, "max_nodes is 0, expected at least 1."),
        ({"perplexity": 0.5}, "perplexity is 0.5, expected at least 1."),
        ({"perplexity": float("nan")}, "perplexity is nan, expected at least 1."),
        ({"seed": -1}, "seed is -1, expected 0 to 2,147,483,647."),
        ({"classes": tuple("abcdefghi")}, "classes has 9 labels, expected at most 8."),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        MapOptions(**options)
    assert str(caught.value) == message
