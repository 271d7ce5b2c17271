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


def log_links(visible: VisibleNetwork, relation: Relation) -> Tensor:
    """(N,): the log of each target's number of visible edges of the relation, and one.

    Trained against keys of a batch, which are as frequent as they are linked, a score is the log of how much
    likelier than usual a link is. With this it is the log of how likely it is, up to a constant.
    """
    return torch.from_numpy(np.log1p(visible.links(relation.target, relation))).float()


def candidate_counts(query_of: Ints, excluded: Ints, queries: int, rows: Ints) -> NDArray[np.int64]:
    """(Q,): among how many of the candidates ``rows`` each query's key is ranked, itself included.

    ``excluded`` are the nodes that are not ranked against the key of the query ``query_of``.
    """
    there = np.isin(excluded, rows)
    pairs = np.unique(np.stack([query_of[there], excluded[there]]), axis=1)  # (2, n): each once
    return len(rows) - np.bincount(pairs[0], minlength=queries) + 1
