"""Vectors of nodes that the network does not have; neither it nor the model changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from heterformer.embedding.newcomers import check_embedded
from heterformer.errors import InputError
from heterformer.models.text_encoder import edge_type_to
from heterformer.network.lookup import Node, find_node, node_type_named
from heterformer.network.schema import NodeType
from heterformer.serve.batching import BatchingEncoder, EncodedText, NewText, Rows
from heterformer.serve.deadline import Deadline
from heterformer.serve.runs import ServedRun, rows_by_type

NeighborNames = Mapping[str, Sequence[str]]  # ids or names by node type


@dataclass(frozen=True)
class NewNode:
    """A node as it is sent: of a type, with its text if the type has texts, and neighbours in the network."""

    text: str | None = None
    neighbors: NeighborNames = field(default_factory=dict)
    node_type: str = ""  # the schema's ``query_type`` unless given


def resolve(run: ServedRun, node: NewNode, deadline: Deadline) -> NewText:
    """The type and the rows of the neighbours; what the model cannot read is refused."""
    schema, node_type = run.schema, run.schema.query_type
    if node.node_type:
        node_type = node_type_named(schema, node.node_type, None, "type")
    rows = rows_by_type(_found(run, node.neighbors, deadline))
    if node_type in schema.text_rich:
        if node.text is None:
            raise InputError(f"a new {node_type!r} node needs a text; give it as 'text'.")
        run.check_neighbors(rows, node_type)
        return NewText(node.text, rows, node_type)
    if node.text:
        raise InputError(f"nodes of type {node_type!r} have no text; leave it out.")
    _check_textless(run, node_type, rows)
    return NewText("", rows, node_type)


def encode(
    run: ServedRun, batches: BatchingEncoder, nodes: Sequence[NewText], deadline: Deadline
) -> list[EncodedText]:
    """The vectors of new nodes: texts in batches with those of other requests, nodes without text alone."""
    with_text = [node for node in nodes if node.node_type not in run.schema.textless]
    encoded: dict[NodeType, Iterator[EncodedText]] = {}
    for node_type in run.schema.textless:
        neighbors = [node.neighbors for node in nodes if node.node_type == node_type]
        if neighbors:
            with run.exclusive(deadline):
                vectors = _textless_vectors(run, node_type, neighbors)
            encoded[node_type] = iter([EncodedText(vector, 0) for vector in vectors])
    texts = iter(batches.encode(run, with_text, deadline))
    return [next(encoded.get(node.node_type, texts)) for node in nodes]


def _found(run: ServedRun, neighbors: NeighborNames, deadline: Deadline) -> list[Node]:
    nodes = []
    for name_of_type, names in neighbors.items():
        node_type = node_type_named(run.schema, name_of_type, None, "neighbors")
        for name in names:
            deadline.left()  # each reads whole columns
            nodes.append(find_node(run.network, name, [node_type]))
    return nodes


def _check_textless(run: ServedRun, node_type: NodeType, rows: Rows) -> None:
    """Refuse a new node without text that nothing tells what it is."""
    check_embedded(run.model, node_type)
    near = [t for t in run.schema.neighbor_types_of(node_type) if t in run.schema.text_rich]
    if not near:
        problem = f"nodes of type {node_type!r} have neither text nor neighbours that have"
        raise InputError(f"{problem}; a new one cannot be embedded.")
    listed = " or ".join(map(repr, near))
    for neighbor in rows:
        if neighbor not in near:
            problem = f"neighbours of type {neighbor!r} say nothing about a new {node_type!r} node"
            raise InputError(f"{problem}; give those of type {listed}.")
    if not rows:
        problem = f"a new {node_type!r} node has no text and is made of its neighbours' texts"
        raise InputError(f"{problem}; give neighbours of type {listed}.")


def _textless_vectors(run: ServedRun, node_type: NodeType, neighbors: Sequence[Rows]) -> NDArray[np.float32]:
    nodes = [
        {edge_type_to(run.schema, near, node_type): rows for near, rows in each.items()} for each in neighbors
    ]
    return run.recommender.newcomers.encode(node_type, nodes)
