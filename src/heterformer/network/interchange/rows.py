"""The contents of a network, some thousand rows at a time: memory does not grow with the network."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from heterformer.network.schema import NodeType, Relation
from heterformer.network.store import Network

EDGES = 100_000  # edges whose ids are looked up at a time


def node_rows(network: Network, node_type: NodeType) -> Iterator[dict[str, Any]]:
    """Everything stored of each node, by stored column; ``label`` is a list, a missing value is None."""
    for batch in network.batches(node_type):
        yield from batch.to_pylist()


def edge_ids(network: Network, relation: Relation) -> Iterator[tuple[str, str]]:
    """The edges of a relation as pairs of ids, in stored order."""
    sources, targets = network.edges(relation.name)
    source_ids, target_ids = network.id_series(relation.source), network.id_series(relation.target)
    for start in range(0, len(sources), EDGES):
        block = slice(start, start + EDGES)
        yield from zip(source_ids.gather(sources[block]), target_ids.gather(targets[block]), strict=True)


def free_name(name: str, taken: set[str]) -> str:
    """``name``, or with underscores behind it until nobody else has it."""
    while name in taken:
        name += "_"
    return name
