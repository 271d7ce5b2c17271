"""The contents of a network, some thousand rows at a time: memory grows by ids and a few bytes per edge."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

from numpy.typing import NDArray

from heterformer.network.schema import EdgeColumn, NodeType, Relation
from heterformer.network.store import Network
from heterformer.progress import progress_bar


def node_rows(network: Network, node_type: NodeType) -> Iterator[dict[str, Any]]:
    """The stored values of each node by column; ``label`` is a list, a missing value is None."""
    with progress_bar(f"writing {node_type} nodes", network.schema.counts[node_type], "nodes") as bar:
        for batch in network.batches(node_type):
            yield from batch.to_pylist()
            bar.advance(len(batch))


def edge_rows(network: Network, relation: Relation, block_size: int = 100_000) -> Iterator[tuple[Any, ...]]:
    """The edges of a relation in stored order: both ids, then ``edge_columns``.

    ``block_size`` of them are in memory.
    """
    sources, targets = network.edges(relation.name)
    values = edge_columns(network, relation).values()
    source_ids, target_ids = network.id_series(relation.source), network.id_series(relation.target)
    with progress_bar(f"writing edges of {relation.name}", len(sources), "edges") as bar:
        for start in range(0, len(sources), block_size):
            block = slice(start, start + block_size)
            ends = source_ids.gather(sources[block]), target_ids.gather(targets[block])
            yield from zip(*ends, *(column[block].tolist() for column in values), strict=True)
            bar.advance(len(sources[block]))


def edge_columns(network: Network, relation: Relation) -> dict[EdgeColumn, NDArray[Any]]:
    """The weights and times of a relation's edges, as far as it has some."""
    names: tuple[EdgeColumn, ...] = get_args(EdgeColumn)
    values = {name: network.edge_values(relation.name, name) for name in names}
    return {name: column for name, column in values.items() if column is not None}


def unused_name(name: str, taken: set[str]) -> str:
    """``name``, with underscores appended until it is not among ``taken``."""
    while name in taken:
        name += "_"
    return name
