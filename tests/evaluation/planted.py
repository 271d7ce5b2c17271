"""Labelled vectors of which it is known what can be learnt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heterformer.arrays import Ints
from heterformer.network.labels import Labels

Floats = NDArray[np.float64]


def labelled(codes: NDArray[np.int64], node_type: str = "paper") -> Labels:
    """Nodes with one class each, in rows 0, 3, 6, ..."""
    names = [f"c{code}" for code in range(int(codes.max()) + 1)]
    matrix = np.eye(len(names), dtype=bool)[codes]
    return Labels.from_matrix(3 * np.arange(len(codes)), names, matrix, False, node_type)


def labelled_several(matrix: NDArray[np.bool_]) -> Labels:
    """Nodes with any number of classes."""
    names = [f"c{code}" for code in range(matrix.shape[1])]
    return Labels.from_matrix(3 * np.arange(len(matrix)), names, matrix, True, "paper")


def lookup_of(vectors: NDArray[Any], labels: Labels) -> Callable[[Ints], NDArray[Any]]:
    """What gives the vectors of labelled nodes by their rows; ``vectors`` are in the order of the labels."""
    return lambda rows: vectors[np.searchsorted(labels.rows, rows)]


def clusters(members: list[int], width: int = 8, apart: float = 10.0, seed: int = 0) -> tuple[Floats, Labels]:
    """Balls of these sizes at random places, one class each; 0 ``apart`` is pure noise."""
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.repeat(np.arange(len(members)), members))
    places = np.linalg.qr(rng.normal(size=(width, width)))[0][: len(members)]
    return apart * places[codes] + rng.normal(size=(len(codes), width)), labelled(codes)
