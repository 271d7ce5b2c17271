"""Test pairs of relations other than the predicted ones: whose paper, in which venue."""

from __future__ import annotations

import numpy as np

from heterformer.errors import OptionError
from heterformer.network.schema import Relation
from heterformer.network.split.options import SplitOptions
from heterformer.network.split.pairs import Pairs, one_per_query
from heterformer.network.store import Network

SHARE = 0.2  # of a relation's source nodes that get a pair, as in the test part


def other_relations(network: Network) -> tuple[Relation, ...]:
    """All relations but the predicted ones."""
    return tuple(r for r in network.schema.relations if r not in network.schema.predicted)


def named_relations(network: Network, names: str) -> tuple[Relation, ...]:
    """The relations of a comma-separated list; none may be a predicted one."""
    known = {r.name: r for r in other_relations(network)}
    listed = [name.strip() for name in names.split(",")]
    for name in listed:
        if name not in known:
            expected = ", ".join(map(repr, known)) or "none here"
            problem = f"has {name!r}, expected a relation besides the predicted: {expected}."
            raise OptionError(SplitOptions, "also", problem)
    return tuple(known[name] for name in dict.fromkeys(listed))


def draw_other_pairs(network: Network, relation: Relation, seed: int) -> Pairs:
    """One pair each for a fifth of the source nodes. Every target keeps an edge of the relation.

    No model can rank an author whose only paper is held out.
    """
    sources, targets = network.edges(relation.name)
    number = network.schema.relations.index(relation)
    rng = np.random.default_rng([seed, 1 + number])  # independent of the predicted relation's draws
    degree = np.bincount(targets, minlength=network.schema.counts[relation.target])
    has_other_edges = degree[targets] > 1
    pairs = one_per_query(sources[has_other_edges], targets[has_other_edges].astype(np.int64), rng)
    if relation.source == relation.target:
        pairs = _one_direction(pairs)
    pairs = rng.permutation(pairs)[: max(1, round(SHARE * len(pairs)))]
    drawn = np.bincount(pairs[:, 1], minlength=len(degree))
    return pairs[drawn[pairs[:, 1]] < degree[pairs[:, 1]]]


def _one_direction(pairs: Pairs) -> Pairs:
    """Only one of two pairs (a, b) and (b, a)."""
    unordered = np.stack([pairs.min(1), pairs.max(1)], 1)
    _, positions = np.unique(unordered, axis=0, return_index=True)
    distinct: Pairs = pairs[np.sort(positions)]
    return distinct
