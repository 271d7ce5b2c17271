"""Which keys of a batch are no negatives of a query although they are not its own key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from heterformer.arrays import Ints
from heterformer.batches.visible import VisibleNetwork
from heterformer.network.schema import Relation
from heterformer.network.split.pairs import Pairs

MASK_ENTRIES = 1 << 18  # made at once: calls cost more than work, but large masks need memory


def false_negative_masks(
    visible: VisibleNetwork,
    steps: Sequence[Pairs],
    shares: Sequence[slice],
    entries: int = MASK_ENTRIES,
    negatives: Sequence[Ints] | None = None,
    relation: Relation | None = None,
) -> list[NDArray[np.bool_]]:
    """For each step's pairs (p, P): the rows of a share of its queries, over the keys of all its pairs.

    With further ``negatives`` of each step, (p, P + N): they come after the keys. Key j is a false negative
    of query i if a visible edge joins them, either way round, or if it is the same node as key i or as the
    query. Held-out edges are not consulted: that they exist must not reach training. About ``entries`` of
    the masks are made at a time.
    """
    relation = relation or visible.network.schema.predicted[0]
    queries, keys = ([np.ascontiguousarray(pairs[:, side]) for pairs in steps] for side in (0, 1))
    if negatives is not None:
        keys = [np.concatenate(both) for both in zip(keys, negatives, strict=True)]
    masks = [np.empty((s.stop - s.start, len(k)), dtype=bool) for s, k in zip(shares, keys, strict=True)]
    for group in _row_groups([mask.shape for mask in masks], entries):
        query, key, own = [], [], []
        for n, rows in group:
            in_step = slice(shares[n].start + rows.start, shares[n].start + rows.stop)
            query.append(np.repeat(queries[n][in_step], len(keys[n])))
            key.append(np.tile(keys[n], rows.stop - rows.start))
            own.append(np.repeat(keys[n][in_step], len(keys[n])))
        ends = (np.concatenate(rows) for rows in (query, key, own))
        flat = _is_false_negative(visible, relation, *ends)
        sizes = [masks[n][rows].size for n, rows in group]
        for (n, rows), part in zip(group, np.split(flat, np.cumsum(sizes)[:-1]), strict=True):
            masks[n][rows] = part.reshape(-1, len(keys[n]))
    for mask, share in zip(masks, shares, strict=True):
        np.fill_diagonal(mask[:, share], False)
    return masks


def _is_false_negative(
    visible: VisibleNetwork, relation: Relation, query: Ints, key: Ints, own: Ints
) -> NDArray[np.bool_]:
    """For each query and key, whether the key, if it is not the query's ``own``, is a false negative."""
    schema = visible.network.schema
    edge_types = [relation.forward]
    mask: NDArray[np.bool_] = key == own
    if relation.source == relation.target:
        edge_types.append(relation.backward)
        mask |= query == key
    view = visible.adjacency(relation.source, relation.target)
    lower, upper = view.adjacency.between(query, key)
    joined = np.flatnonzero(view.rank(upper) > view.rank(lower))
    numbers = [schema.edge_types.index(e) for e in edge_types]
    mask[joined] |= view.adjacency.holds(lower[joined], upper[joined], numbers)
    return mask


def _row_groups(shapes: Sequence[tuple[int, ...]], entries: int) -> Iterator[list[tuple[int, slice]]]:
    """Rows of several matrices, as (matrix, rows), in groups of about ``entries`` entries."""
    group: list[tuple[int, slice]] = []
    room = entries
    for number, (count, width) in enumerate(shapes):
        most = max(1, entries // max(1, width))
        for start in range(0, count, most):
            rows = slice(start, min(start + most, count))
            if group and (rows.stop - start) * width > room:
                yield group
                group, room = [], entries
            group.append((number, rows))
            room -= (rows.stop - start) * width
    if group:
        yield group
