from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from heterformer.network.stratified import LEAST_MEMBERS, PARTS, SHARES, TEST, TRAIN, stratified_parts


def one_class_each(members: list[int]) -> NDArray[np.bool_]:
    """Nodes of classes of these sizes, in random order."""
    codes = np.repeat(np.arange(len(members)), members)
    return np.eye(len(members), dtype=bool)[np.random.default_rng(0).permutation(codes)]


@pytest.mark.parametrize(
    ("members", "sizes"),
    [
        (10, (7, 1, 2)),
        (100, (70, 10, 20)),
        (3, (1, 1, 1)),
        (4, (2, 1, 1)),
        (7, (5, 1, 1)),
        (14, (10, 1, 3)),
    ],
)
def test_each_class_is_divided_by_itself(members: int, sizes: tuple[int, int, int]) -> None:
    matrix = one_class_each([members, 50, 25])
    part = stratified_parts(matrix, np.random.default_rng(1))
    assert tuple(int((matrix[:, 0] & (part == p)).sum()) for p in PARTS) == sizes
    assert set(part) == set(PARTS)


def test_which_nodes_is_a_matter_of_the_seed() -> None:
    matrix = one_class_each([40, 40])
    first, again, other = (stratified_parts(matrix, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()
    assert (matrix[first == TRAIN].sum(0) == matrix[other == TRAIN].sum(0)).all()


def test_every_node_is_tested_now_and_then() -> None:
    matrix = one_class_each([20, 10])
    tested = np.stack([stratified_parts(matrix, np.random.default_rng(s)) == TEST for s in range(100)])
    assert (np.abs(tested.mean(0) - 0.2) < 0.15).all()


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.integers(0, 2**32), st.integers(2, 8), st.integers(6, 80), st.floats(0.02, 0.6))
def test_shared_nodes_leave_no_class_untrained(seed: int, classes: int, count: int, density: float) -> None:
    rng = np.random.default_rng(seed)
    matrix = rng.random((count, classes)) < density * rng.random(classes)
    matrix[np.arange(count), rng.integers(0, classes, count)] = True
    matrix = matrix[:, matrix.sum(0) >= LEAST_MEMBERS]
    matrix = matrix[matrix.any(1)]
    assume(matrix.size)
    part = stratified_parts(matrix, rng)
    assert set(part) == set(PARTS)
    assert matrix[part == TRAIN].any(0).all()


def test_shares_of_classes_that_share_nodes() -> None:
    rng = np.random.default_rng(0)
    matrix = rng.random((3000, 6)) < [0.5, 0.3, 0.2, 0.1, 0.05, 0.02]
    matrix = matrix[matrix.any(1)]
    part = stratified_parts(matrix, rng)

    def unevenness(part: NDArray[np.int64]) -> NDArray[np.float64]:
        """How far each class is from its shares of the parts."""
        shares = np.stack([matrix[part == p].sum(0) / matrix.sum(0) for p in PARTS], axis=1)  # (C, 3)
        return np.abs(shares - SHARES).max(1)

    assert unevenness(part).max() < 0.03
    assert np.abs(np.bincount(part) / len(part) - SHARES).max() < 0.03
    rarest = int(matrix.sum(0).argmin())  # some sixty nodes
    assert unevenness(part)[rarest] < 0.01
    assert unevenness(rng.permutation(part))[rarest] > 0.01


def test_a_class_whose_nodes_all_went_to_other_parts_gets_one_back() -> None:
    """The first two classes can take all nodes of the third: only their own training node is another's."""
    matrix = np.zeros((5, 3), dtype=bool)
    for number, nodes in enumerate(([0, 1, 2], [0, 3, 4], [1, 3, 4])):
        matrix[nodes, number] = True
    for seed in range(50):
        part = stratified_parts(matrix, np.random.default_rng(seed))
        assert matrix[part == TRAIN].any(0).all()
        assert set(part) == set(PARTS)
