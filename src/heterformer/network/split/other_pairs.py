"""Test pairs of relations other than the predicted ones: whose paper, in which venue."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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


def draw_other_pairs(network: Network, relation: Relation, seed: int, since: float | None = None) -> Pairs:
    """One pair each for a fifth of the source nodes. Every target keeps an edge of the relation.

    No model can rank an author whose only paper is held out. With ``since``, the beginning of the test part
    of a split by time, no pair is earlier: the nodes are read as of then.
    """
    sources, targets = network.edges(relation.name)
    number = network.schema.relations.index(relation)
    rng = np.random.default_rng([seed, 1 + number])  # independent of the predicted relation's draws
    degree = np.bincount(targets, minlength=network.schema.counts[relation.target])
    eligible = degree[targets] > 1
    if since is not None and (times := _edge_times(network, relation)) is not None:
        eligible &= times >= since
    pairs = one_per_query(sources[eligible], targets[eligible].astype(np.int64), rng)
    if relation.source == relation.target:
        pairs = _one_direction(pairs)
    pairs = rng.permutation(pairs)[: max(1, round(SHARE * len(pairs)))]
    drawn = np.bincount(pairs[:, 1], minlength=len(degree))
    return pairs[drawn[pairs[:, 1]] < degree[pairs[:, 1]]]


def _edge_times(network: Network, relation: Relation) -> NDArray[np.float64] | None:
    """The time of each edge or, without one, of its later end; -inf if unknown, None if none has a time."""
    if (times := network.edge_values(relation.name, "time")) is not None:
        return times
    sources, targets = network.edges(relation.name)
    ends = ((relation.source, sources), (relation.target, targets))
    known = [network.times(end)[rows] for end, rows in ends if network.has_times(end)]
    if not known:
        return None
    latest: NDArray[np.float64] = np.max([np.where(np.isnan(t), -np.inf, t) for t in known], axis=0)
    return latest


def _one_direction(pairs: Pairs) -> Pairs:
    """Only one of two pairs (a, b) and (b, a)."""
    unordered = np.stack([pairs.min(1), pairs.max(1)], 1)
    _, positions = np.unique(unordered, axis=0, return_index=True)
    distinct: Pairs = pairs[np.sort(positions)]
    return distinct
