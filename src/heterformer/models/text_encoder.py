"""Vectors of texts that are no nodes of the network, alone or with neighbours that are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray

from heterformer.arrays import Ints
from heterformer.batches.assembly import SampledEdges, SecondHop
from heterformer.batches.batch import Batch
from heterformer.batches.batcher import Batcher
from heterformer.batches.query import query_batch
from heterformer.batches.stable import StableSampler
from heterformer.batches.visible import VisibleNetwork
from heterformer.errors import InputError
from heterformer.models.inference import evaluating
from heterformer.models.known_nodes import KnownNodes
from heterformer.network.ids import known_rows
from heterformer.network.schema import EdgeType, NodeType, Schema
from heterformer.network.store import Network
from heterformer.network.tokens import PackedTokens
from heterformer.untrusted import check_text, short_repr

if TYPE_CHECKING:
    from heterformer.models.contract import NeighborIds, NodeEncoder

SEED = 0  # of the neighbours' own neighbours, which a query's neighbours have whatever vectors are searched
NO_TOKENS = PackedTokens({}, np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.int32))
Embeddings = Callable[[NodeType, Ints], NDArray[Any]]  # h0 of the rows of a textless type, (n, 64)
RowsByType = Mapping[NodeType, Sequence[int]]  # of neighbours, by their type


def encode(
    model: NodeEncoder,
    texts: str | Sequence[str],
    neighbors: NeighborIds | Sequence[NeighborIds] | None,
    network: Network | None,
    batch_size: int,
    tokenizer: Any,
) -> NDArray[np.float32]:
    """What ``NodeEncoder.encode`` does: neighbours are ids."""
    if isinstance(texts, str):
        if not (neighbors is None or isinstance(neighbors, Mapping)):
            raise InputError(f"neighbors is {neighbors!r}, expected one dictionary for one text.")
        vectors = encode(model, [texts], [neighbors or {}], network, batch_size, tokenizer)
        vector: NDArray[np.float32] = vectors[0]
        return vector
    if not hasattr(texts, "__len__"):
        raise InputError(f"texts is {short_repr(texts)}, expected a string or a list of strings.")
    if batch_size < 1:
        raise InputError(f"batch_size is {batch_size}, expected at least 1.")
    if neighbors is None:
        neighbors = [{}] * len(texts)
    if isinstance(neighbors, Mapping) or len(neighbors) != len(texts):
        kind = "one dictionary" if isinstance(neighbors, Mapping) else f"{len(neighbors)} dictionaries"
        raise InputError(f"neighbors has {kind}, expected a list of {len(texts)}, one for each text.")
    rows = NeighborRows(model, network)
    neighbor_rows = [rows.lookup(each) for each in neighbors]
    encoder = TextEncoder(model, network, tokenizer, known_rows=rows.of_network)
    return encoder.encode(texts, neighbor_rows, batch_size)


class TextEncoder:
    """Encodes texts as nodes, which they are not: of the schema's ``query_type`` unless types are given.

    Neighbours are rows of ``network``. Embeddings of the textless ones are the model's own, or those that
    ``embeddings`` gives for their rows. ``known_rows`` tells the rows of the model's own tables, -1 for none,
    of a network's textless nodes, if they may differ.
    """

    def __init__(
        self,
        model: NodeEncoder,
        network: Network | None = None,
        tokenizer: Any = None,
        embeddings: Embeddings | None = None,
        known_rows: Callable[[NodeType, Ints], Ints] | None = None,
    ) -> None:
        self.model, self.network, self.embeddings = model, network, embeddings
        self.known_rows = known_rows
        # Not the network's: that of another one may differ in what does not matter here.
        self.schema: Schema = model.schema
        self.tokenizer = tokenizer or model.tokenizer

    def encode(
        self,
        texts: Sequence[str],
        neighbors: Sequence[RowsByType],
        batch_size: int = 32,
        types: Sequence[NodeType] = (),
    ) -> NDArray[np.float32]:
        """(n, d): a vector for each text, whose neighbours and text-rich type are those at the same place."""
        if not len(texts):
            return np.empty((0, self.model.width), dtype=np.float32)
        types = types or [self.schema.query_type] * len(texts)
        prompts, limit = self.model.prompts, self.model.text_limit
        for text in texts:
            check_text(text, "the text")
        prompted = [prompts[t] + text.strip() for t, text in zip(types, texts, strict=True)]
        words = self.tokenizer(prompted, truncation=True, max_length=limit)["input_ids"]
        edges = [
            {self.edge_type(near, center): rows for near, rows in each.items() if len(rows)}
            for center, each in zip(types, neighbors, strict=True)
        ]
        tokens = NO_TOKENS
        if any(edge_type.neighbor in self.schema.text_rich for each in edges for edge_type in each):
            assert self.network is not None
            tokens = self.model.open_tokens(self.network, self.tokenizer)
        vectors = np.empty((len(texts), self.model.width), dtype=np.float32)
        order = np.argsort([len(each) for each in words], kind="stable")  # texts of similar length together
        with evaluating(self.model):
            for start in range(0, len(order), batch_size):
                chosen = order[start : start + batch_size]
                batch = query_batch(
                    self.schema,
                    tokens,
                    [words[i] for i in chosen],
                    [edges[i] for i in chosen],
                    None if tokens is NO_TOKENS else self.second_hop,
                )
                encoded = self.model.encode_batch(self._with_embeddings(batch).to(self.model.device))
                vectors[chosen] = encoded.float().cpu().numpy()
        return vectors

    @cached_property
    def second_hop(self) -> SecondHop | None:
        """The neighbours of a text's neighbours, as ``embed`` samples them."""
        if not self.model.second_hop or self.network is None:
            return None
        visible = VisibleNetwork.whole(self.network)
        batcher = Batcher(visible, NO_TOKENS, second_hop=self.model.second_hop)
        sampled = batcher.further_neighbors(StableSampler(self.network, SEED))
        assert sampled is not None
        return lambda node_type, rows: map(self._as_known, sampled(node_type, rows))

    def _as_known(self, edges: SampledEdges) -> SampledEdges:
        """Edges to textless nodes by the rows that the model knows them by, others being left out."""
        if self.known_rows is None or edges.neighbor_type in self.schema.text_rich:
            return edges
        rows = self.known_rows(edges.neighbor_type, edges.neighbor.astype(np.int64))
        kept = np.flatnonzero(rows >= 0)
        center, edge_type = edges.center[kept], edges.edge_type[kept]
        return edges._replace(center=center, neighbor=rows[kept].astype(np.int32), edge_type=edge_type)

    def edge_type(self, neighbor: NodeType, center: NodeType = "") -> EdgeType:
        """How a text of a type sees neighbours of a type, which must be one that the model looks at."""
        model, seen = self.model, self.model.neighbor_types
        if neighbor in seen:
            return edge_type_to(self.schema, neighbor, center)
        name = model.config.options_class.display_name
        source = model.name_or_path or "the model"
        if not seen:
            raise InputError(f"{source}: its model ({name}) looks at no neighbours; give the text alone.")
        listed = ", ".join(map(repr, seen))
        said = f"does not look at neighbours of type {neighbor!r}, only at those of {listed}"
        raise InputError(f"{source}: its model ({name}) {said}.")

    def _with_embeddings(self, batch: Batch) -> Batch:
        """The batch with the embeddings of its textless nodes, unless the model's tables have them."""
        if self.embeddings is None:
            return batch
        embeddings = {}
        for node_type, rows in batch.textless.items():
            values = np.asarray(self.embeddings(node_type, rows.numpy()), dtype=np.float32)  # (n, 64)
            embeddings[node_type] = torch.from_numpy(values)
        return replace(batch, textless_embeddings=embeddings)


def edge_type_to(schema: Schema, neighbor: NodeType, center: NodeType = "") -> EdgeType:
    """How a new node sees a neighbour of a type: by the first relation from its own type to that one.

    If no relation points that way, by the first one that points back. Without a type of its own it is of the
    schema's ``query_type``.
    """
    center = center or schema.query_type
    edge_types = schema.edge_types_of(center, neighbor)
    if not edge_types:
        near = ", ".join(map(repr, schema.neighbor_types_of(center)))
        raise InputError(
            f"no relation joins {center!r} and {neighbor!r}; neighbours may be of the types {near}."
        )
    forward = [r.forward for r in schema.relations if r.forward in edge_types]
    return (forward or edge_types)[0]


class NeighborRows:
    """From the ids of neighbours to rows: of the model's tables for textless nodes, else of the network."""

    def __init__(self, model: NodeEncoder, network: Network | None) -> None:
        self.model, self.network = model, network
        self.known = KnownNodes.open(folder) if (folder := model.folder) else None

    def lookup(self, neighbors: NeighborIds) -> RowsByType:
        return {t: self._rows(t, list(ids)) for t, ids in neighbors.items() if len(ids)}

    def of_network(self, node_type: NodeType, rows: Ints) -> Ints:
        """The rows that the model knows textless nodes of the network by, -1 for those that it does not."""
        assert self.network is not None
        if self.known is None or node_type not in self.known.ids:
            same = self.model.schema.counts.get(node_type) == self.network.schema.counts.get(node_type)
            return rows if same else np.full_like(rows, -1)
        ids = pl.Series(self.network.ids(node_type, rows), dtype=pl.String)
        return known_rows(ids, self.known.ids[node_type])

    def _rows(self, node_type: NodeType, ids: list[str]) -> Sequence[int]:
        textless = self.model.schema.textless
        edge_type_to(self.model.schema, node_type)  # refuses a type that no relation joins
        if node_type in textless and self.known is not None and node_type in self.known.ids:
            rows = known_rows(pl.Series(ids, dtype=pl.String), self.known.ids[node_type])
            if (rows < 0).any():
                unknown = ids[int(np.argmax(rows < 0))]
                problem = f"the model has not seen {node_type} {unknown!r} in training"
                raise InputError(f"{self.model.name_or_path}: {problem}; Searcher(run, network=...) may.")
            return [int(row) for row in rows]
        if self.network is None:
            raise InputError(f"neighbours of type {node_type!r} are given by id; give network= as well.")
        counts = self.model.schema.counts.get(node_type), self.network.schema.counts.get(node_type)
        if node_type in textless and counts[0] != counts[1]:
            problem = f"has {counts[1]} {node_type} nodes, the model {counts[0]}"
            raise InputError(f"{self.network.path}: {problem}; expected the network that it was made for.")
        return [int(row) for row in self.network.rows(node_type, ids)]
