from __future__ import annotations

from dataclasses import replace
from math import log
from typing import Any

import numpy as np
import pytest
import tyro

from heterformer.arrays import AnyFloats, Ints
from heterformer.errors import InputError
from heterformer.evaluation.clustering import cluster
from heterformer.evaluation.options import ClusteringOptions
from tests.evaluation.planted import clusters, labelled, labelled_several, lookup_of

FEW = ClusteringOptions(runs=3)


def test_planted_clusters_are_found() -> None:
    vectors, labels = clusters([40, 40, 40], apart=20)
    found = cluster(lookup_of(vectors, labels), labels, ClusteringOptions())
    assert (len(found.metrics["nmi"].values), len(found.metrics["ari"].values)) == (10, 10)
    assert max(found.metrics["nmi"].values) == pytest.approx(1)
    assert max(found.metrics["ari"].values) == pytest.approx(1)
    assert found.metrics["nmi"].mean > 0.9
    assert (found.nodes, found.classes) == (120, {"c0": 40, "c1": 40, "c2": 40})


def test_noise_has_no_clusters() -> None:
    vectors, labels = clusters([200, 200, 200], apart=0)
    found = cluster(lookup_of(vectors, labels), labels, FEW)
    assert abs(found.metrics["nmi"].mean) < 0.03
    assert abs(found.metrics["ari"].mean) < 0.03


def test_by_hand() -> None:
    """Two clear clusters, aab and bbb."""
    vectors = np.array([[0.0], [0.1], [0.2], [9.0], [9.1], [9.2]])
    labels = labelled(np.array([0, 0, 1, 1, 1, 1]))
    found = cluster(lookup_of(vectors, labels), labels, FEW)
    information = 2 / 6 * log(2 * 6 / (2 * 3)) + 1 / 6 * log(6 / (4 * 3)) + 3 / 6 * log(3 * 6 / (4 * 3))
    entropies = -(2 / 6 * log(2 / 6) + 4 / 6 * log(4 / 6)), log(2)
    assert found.metrics["nmi"].values == pytest.approx([information / (sum(entropies) / 2)] * 3)
    # Of 15 pairs 1 + 6 are of one class, 3 + 3 of one cluster, 1 + 3 of both.
    expected = 7 * 6 / 15
    assert found.metrics["ari"].values == pytest.approx([(4 - expected) / ((7 + 6) / 2 - expected)] * 3)
    assert found.metrics["nmi"].deviation == pytest.approx(0)


def test_runs_start_elsewhere_and_seeds_decide_where() -> None:
    vectors, labels = clusters([50, 50, 50, 50], apart=2.5)
    first, again, other = (
        cluster(lookup_of(vectors, labels), labels, replace(FEW, seed=seed)) for seed in (0, 0, 1)
    )
    assert first == again
    assert first.metrics["nmi"] != other.metrics["nmi"]
    assert len(set(first.metrics["nmi"].values)) > 1


def test_nodes_with_several_classes_are_left_out() -> None:
    matrix = np.zeros((60, 3), dtype=bool)
    matrix[:30, 0] = matrix[30:, 1] = True
    matrix[25:35, 2] = True
    vectors = np.where(matrix[:, :1], 5.0, -5.0) + np.random.default_rng(0).normal(size=(60, 2)) / 10
    found = cluster(lookup_of(vectors, labelled_several(matrix)), labelled_several(matrix), FEW)
    assert (found.nodes, found.classes) == (50, {"c0": 25, "c1": 25})  # nobody has c2 alone
    assert found.metrics["nmi"].mean == pytest.approx(1)


def test_the_top_classes_are_those_of_all_nodes_and_other_labels_count_as_labels() -> None:
    matrix = np.zeros((50, 3), dtype=bool)
    matrix[:30, 0] = matrix[10:30, 1] = matrix[30:35, 1] = matrix[35:, 2] = matrix[:4, 2] = True
    # c0: 30 nodes, 6 of them alone; c1: 25 nodes, 5 alone; c2: 19 nodes, 15 alone and 4 with c0
    vectors = np.random.default_rng(0).normal(size=(50, 2))
    found = cluster(
        lookup_of(vectors, labelled_several(matrix)), labelled_several(matrix), replace(FEW, top_classes=2)
    )
    assert found.classes == {"c0": 6, "c1": 5}


def test_a_sample() -> None:
    vectors, labels = clusters([100, 100], apart=20)
    lookup, asked = lookup_of(vectors, labels), list[int]()

    def counted(rows: Ints) -> AnyFloats:
        asked.append(len(rows))
        return lookup(rows)

    found = cluster(counted, labels, replace(FEW, sample=40))
    assert asked == [40]
    assert found.nodes == sum(found.classes.values()) == 40
    assert found.metrics["nmi"].mean == pytest.approx(1)
    assert cluster(lookup_of(vectors, labels), labels, replace(FEW, sample=1000)).nodes == 200


@pytest.mark.filterwarnings("error")
def test_vectors_that_are_all_the_same() -> None:
    _, labels = clusters([10, 10])
    found = cluster(lambda rows: np.ones((len(rows), 3), dtype=np.float16), labels, FEW)
    assert found.metrics["nmi"].mean == found.metrics["ari"].mean == 0


def test_vectors_that_are_not_numbers() -> None:
    vectors, labels = clusters([10, 10])
    vectors[3, 1] = np.nan
    with pytest.raises(InputError, match=r"^paper: 1 of 20 vectors hold NaN or infinity, .* row 9; expected"):
        cluster(lookup_of(vectors, labels), labels, FEW)


def test_nobody_has_one_class_only() -> None:
    labels = labelled_several(np.ones((9, 2), dtype=bool))
    with pytest.raises(InputError) as caught:
        cluster(lambda rows: np.zeros((len(rows), 3)), labels, FEW)
    assert str(caught.value) == (
        "paper: 0 nodes with exactly one class have 0 classes among them, expected at least two."
    )


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"runs": 0}, "runs is 0, expected at least 1."),
        ({"sample": 1}, "sample is 1, expected at least 2 or None."),
        ({"top_classes": 1}, "top_classes is 1, expected at least 2 or None."),
        ({"seed": -1}, "seed is -1, expected 0 to 2,147,483,647."),
    ],
)
def test_options_out_of_range(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError) as caught:
        ClusteringOptions(**options)
    assert str(caught.value) == complaint


def test_options_are_flags() -> None:
    found = tyro.cli(ClusteringOptions, args=["--sample", "20000", "--top-classes", "10"])
    assert found == ClusteringOptions(sample=20_000, top_classes=10)
