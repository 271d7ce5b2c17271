"""A query's vector: what the run's model says of a text that is no node of the network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoTokenizer

from heterformer.batches.batch import Batch
from heterformer.batches.query import query_batch
from heterformer.device import Device, chosen_device
from heterformer.errors import InputError
from heterformer.models.inference import evaluating
from heterformer.models.registry import DISPLAY_NAMES, model_name
from heterformer.network.lookup import Node
from heterformer.network.schema import EdgeType, NodeType, Schema
from heterformer.network.store import Network
from heterformer.network.tokens import PackedTokens, open_tokens
from heterformer.search.index import Matrix
from heterformer.training.run import Run

NO_TOKENS = PackedTokens({}, np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.int32))


class QueryEncoder:
    """Encodes a text alone, the paper's setting, or with nodes of the network as its neighbours.

    Of textless nodes only the embeddings of a query's own neighbours are read, from ``h0`` of their type.
    """

    def __init__(
        self, run: Run, network: Network, h0: Callable[[NodeType], Matrix], device: Device = "auto"
    ) -> None:
        self.run, self.network, self.h0 = run, network, h0
        self.model: Any = run.model(tables=False).to(chosen_device(device))
        # Not the network's: that of another one may differ in what does not matter here.
        self.schema: Schema = self.model.schema
        self.tokenizer = AutoTokenizer.from_pretrained(run.path)

    @cached_property
    def tokens(self) -> PackedTokens:
        """The texts of the network, as embedding reads them."""
        return open_tokens(self.network, self.tokenizer, self.schema.max_tokens)

    def encode(self, text: str, neighbors: Sequence[Node] = ()) -> NDArray[np.float32]:
        """(d,): the vector of a node of the predicted relation's source type with this text."""
        words = self.tokenizer(text.strip(), truncation=True, max_length=self.schema.max_tokens)["input_ids"]
        given: dict[EdgeType, list[int]] = {}
        for node in neighbors:
            self._check_seen(node.node_type)
            given.setdefault(edge_type_to(self.schema, node.node_type), []).append(node.row)
        texts = any(edge_type.neighbor in self.schema.text_rich for edge_type in given)
        batch = query_batch(self.schema, self.tokens if texts else NO_TOKENS, words, given)
        with evaluating(self.model):
            vector = self.model.encode_batch(self._with_embeddings(batch).to(self.model.device))[0]
        return vector.float().cpu().numpy()  # type: ignore[no-any-return]

    def _check_seen(self, node_type: NodeType) -> None:
        seen = self.model.neighbor_types
        if node_type in seen:
            return
        name = DISPLAY_NAMES[model_name(self.run.path)]
        if not seen:
            raise InputError(
                f"{self.run.path}: its model ({name}) looks at no neighbours; give the text alone."
            )
        listed = ", ".join(map(repr, seen))
        said = f"does not look at neighbours of type {node_type!r}, only at those of {listed}"
        raise InputError(f"{self.run.path}: its model ({name}) {said}.")

    def _with_embeddings(self, batch: Batch) -> Batch:
        """The batch with its textless nodes numbered from 0, and their embeddings in the model's tables."""
        for node_type, rows in batch.textless.items():
            values = np.asarray(self.h0(node_type)[rows.numpy()], dtype=np.float32)  # (n, 64)
            self.model.textless.take(node_type, torch.from_numpy(values).to(self.model.device))
        return replace(batch, textless={t: torch.arange(len(rows)) for t, rows in batch.textless.items()})


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
