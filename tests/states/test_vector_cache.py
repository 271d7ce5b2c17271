from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from heterformer.arrays import Ints
from heterformer.states.vector_cache import VectorCache

COUNTS = {"paper": 50, "author": 8}
VECTORS = {t: torch.randn(n, 5, generator=torch.Generator().manual_seed(n)) for t, n in COUNTS.items()}


class Computed:
    """Vectors from a table, and a record of the rows that were computed."""

    def __init__(self) -> None:
        self.rows: dict[str, list[int]] = {t: [] for t in COUNTS}

    def __call__(self, node_type: str, rows: Ints) -> Tensor:
        self.rows[node_type] += rows.tolist()
        return VECTORS[node_type][torch.from_numpy(rows)]


def test_each_vector_is_computed_once_and_given_in_the_order_asked(tmp_path: Path) -> None:
    computed = Computed()
    cache, rng = VectorCache(computed, COUNTS, tmp_path), np.random.default_rng(0)
    for _ in range(20):
        for node_type, count in COUNTS.items():
            rows = rng.integers(0, count, size=rng.integers(0, 9))  # repeats and gaps included
            assert torch.equal(cache(node_type, rows), VECTORS[node_type][torch.from_numpy(rows)])
    for node_type in COUNTS:
        assert len(computed.rows[node_type]) == len(set(computed.rows[node_type]))
    assert list(tmp_path.iterdir()) == []  # the file has no name
