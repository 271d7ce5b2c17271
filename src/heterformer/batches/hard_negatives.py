"""Mined negatives: for each query some nodes that are close to it without being its neighbours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heterformer.arrays import Ints, ranges
from heterformer.batches.visible import VisibleNetwork
from heterformer.network.schema import Relation


@dataclass(frozen=True)
class HardNegatives:
    """What was mined for some queries."""

    queries: Ints  # (Q,) rows of a predicted relation's source type, ascending
    rows: Ints  # (Q, N) rows of its target type; -1 where there are fewer than N

    def of_step(self, queries: Ints, keys: Ints) -> Ints:
        """The negatives of a step's queries, each node once and none that is a key of the step, ascending."""
        place = np.minimum(np.searchsorted(self.queries, queries), max(0, len(self.queries) - 1))
        if not len(self.queries):
            return np.empty(0, dtype=np.int64)
        mined = self.rows[place[self.queries[place] == queries]]
        return np.setdiff1d(mined[mined >= 0], keys)


def known_neighbors(
    visible: VisibleNetwork, queries: Ints, relation: Relation | None = None
) -> tuple[Ints, Ints]:
    """Every visible edge of a predicted relation, either way, as (position in ``queries``, target row).

    If source and target are of one type, each query is also joined to itself: no node is its own negative.
    """
    schema = visible.network.schema
    relation = relation or schema.predicted[0]
    view = visible.adjacency(relation.source, relation.target)
    start, count = view.rank(view.adjacency.indptr[queries]), view.counts(queries)
    entries = view.position(ranges(start, start + count))
    edge_types = [relation.forward]
    if relation.source == relation.target:
        edge_types.append(relation.backward)
    numbers = [schema.edge_types.index(e) for e in edge_types]
    kept = np.isin(view.adjacency.edge_type[entries], numbers)
    place = np.repeat(np.arange(len(queries)), count)[kept]
    nodes = view.adjacency.neighbor[entries[kept]].astype(np.int64)
    if relation.source == relation.target:
        place = np.concatenate([place, np.arange(len(queries))])
        nodes = np.concatenate([nodes, queries])
    return place, nodes
