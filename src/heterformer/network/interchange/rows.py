"""The contents of a network, some thousand rows at a time: memory does not grow with the network."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from heterformer.network.schema import NodeType, Relation
from heterformer.network.store import Network


def node_rows(network: Network, node_type: NodeType) -> Iterator[dict[str, Any]]:
    """The stored values of each node by column; ``label`` is a list, a missing value is None."""
    for batch in network.batches(node_type):
        yield from batch.to_pylist()


def edge_ids(network: Network, relation: Relation, block_size: int = 100_000) -> Iterator[tuple[str, str]]:
    """The edges of a relation as pairs of ids, in stored order; ``block_size`` of them are in memory."""
    sources, targets = network.edges(relation.name)
    source_ids, target_ids = network.id_series(relation.source), network.id_series(relation.target)
    for start in range(0, len(sources), block_size):
        block = slice(start, start + block_size)
        yield from zip(source_ids.gather(sources[block]), target_ids.gather(targets[block]), strict=True)


def unused_name(name: str, taken: set[str]) -> str:
    """``name``, with underscores appended until it is not among ``taken``."""
    while name in taken:
        name += "_"
    return name
