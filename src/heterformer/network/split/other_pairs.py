"""Pairs of relations other than the predicted one, to be ranked beside it: whose paper, in which venue."""

from __future__ import annotations

import numpy as np

from heterformer.errors import InputError
from heterformer.network.schema import Relation
from heterformer.network.split.pairs import Pairs, one_per_query
from heterformer.network.store import Network

SHARE = 0.2  # of a relation's source nodes that are asked for one of their targets, as in the test part


def other_relations(network: Network) -> tuple[Relation, ...]:
    """All relations but the predicted one."""
    return tuple(r for r in network.schema.relations if r.name != network.schema.predict)


def named_relations(network: Network, names: str) -> tuple[Relation, ...]:
    """Those of a list with commas; each must be a relation other than the predicted one."""
    known = {r.name: r for r in other_relations(network)}
    for name in (asked := [name.strip() for name in names.split(",")]):
        if name not in known:
            expected = ", ".join(map(repr, known)) or "none here"
            raise InputError(f"--also names {name!r}, expected a relation besides the predicted: {expected}.")
    return tuple(known[name] for name in dict.fromkeys(asked))


def draw_other_pairs(network: Network, relation: Relation, seed: int) -> Pairs:
    """One pair each of a fifth of the source nodes. Every target keeps an edge of the relation.

    An author whose only paper is asked for would be unknown, and so could not be found by any model.
    """
    sources, targets = network.edges(relation.name)
    number = network.schema.relations.index(relation)
    rng = np.random.default_rng([seed, 1 + number])  # apart from the predicted relation's draws
    degree = np.bincount(targets, minlength=network.schema.counts[relation.target])
    kept = degree[targets] > 1
    pairs = one_per_query(sources[kept], targets[kept].astype(np.int64), rng)
    if relation.source == relation.target:
        pairs = _not_both_ways(pairs)
    pairs = rng.permutation(pairs)[: max(1, round(SHARE * len(pairs)))]
    drawn = np.bincount(pairs[:, 1], minlength=len(degree))
    return pairs[drawn[pairs[:, 1]] < degree[pairs[:, 1]]]


def _not_both_ways(pairs: Pairs) -> Pairs:
    """Of two nodes that point at each other, one pair only."""
    low, high = pairs.min(1), pairs.max(1)
    _, first = np.unique(np.stack([low, high], 1), axis=0, return_index=True)
    kept: Pairs = pairs[np.sort(first)]
    return kept
