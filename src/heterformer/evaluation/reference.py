"""What a model's ranking is held against: guessing, and ranking keys by how many edges they have."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heterformer.arrays import Ints
from heterformer.batches.visible import VisibleNetwork
from heterformer.network.schema import Relation


def popularity(visible: VisibleNetwork, relation: Relation) -> Tensor:
    """(N,): a score of each target of the relation that grows with its number of visible edges.

    After a split by time later edges do not count, as they are no neighbours of the target either.
    Equal numbers are put into a random order: ties count against a model, and this one has many.
    """
    edges = visible.links(relation.target, relation)
    return torch.from_numpy(edges + np.random.default_rng(0).random(len(edges)))


def candidate_counts(query_of: Ints, excluded: Ints, queries: int, rows: Ints) -> NDArray[np.int64]:
    """(Q,): among how many of the candidates ``rows`` each query's key is ranked, itself included.

    ``excluded`` are the nodes that are not ranked against the key of the query ``query_of``.
    """
    there = np.isin(excluded, rows)
    pairs = np.unique(np.stack([query_of[there], excluded[there]]), axis=1)  # (2, n): each once
    return len(rows) - np.bincount(pairs[0], minlength=queries) + 1
