"""A query's vector: what the run's model says of a text that is no node of its network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from transformers import AutoTokenizer

from heterformer.batches.query import query_batch
from heterformer.errors import InputError
from heterformer.models.inference import evaluating
from heterformer.network.lookup import Node
from heterformer.network.schema import EdgeType, NodeType, Schema
from heterformer.tasks.evaluate import open_run


class QueryEncoder:
    """Encodes a text alone, the paper's setting, or with nodes of the network as its neighbours."""

    def __init__(self, path: Path) -> None:
        opened = open_run(path)
        self.model, self.tokens, self.schema = opened.model, opened.batcher.tokens, opened.network.schema
        self.tokenizer = AutoTokenizer.from_pretrained(path)

    def encode(self, text: str, neighbors: Sequence[Node] = ()) -> NDArray[np.float32]:
        """(d,): the vector of a node of the predicted relation's source type with this text."""
        words = self.tokenizer(text.strip(), truncation=True, max_length=self.schema.max_tokens)["input_ids"]
        given: dict[EdgeType, list[int]] = {}
        for node in neighbors:
            if node.node_type not in self.model.embedded_types:
                raise InputError(f"this run's model does not look at {node.node_type!r} nodes.")
            given.setdefault(edge_type_to(self.schema, node.node_type), []).append(node.row)
        batch = query_batch(self.schema, self.tokens, words, given)
        with evaluating(self.model):
            vector = self.model.encode(batch.to(self.model.device))[0]
        return vector.float().cpu().numpy()


def edge_type_to(schema: Schema, neighbor: NodeType) -> EdgeType:
    """How a query sees a neighbour of a type: by the first relation from its own type to that one.

    If no relation points that way, by the first one that points back.
    """
    center = schema.predicted.source
    found = schema.edge_types_of(center, neighbor)
    if not found:
        near = ", ".join(map(repr, schema.neighbor_types_of(center)))
        raise InputError(
            f"no relation joins {center!r} and {neighbor!r}; neighbours may be of the types {near}."
        )
    forward = [r.forward for r in schema.relations if r.forward in found]
    return (forward or found)[0]
