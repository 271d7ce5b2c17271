"""A batch of texts that are no nodes of the network, with neighbours that are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch

from heterformer.arrays import Ints
from heterformer.batches.assembly import SampledEdges, SecondHop, assemble
from heterformer.batches.batch import Batch, Texts
from heterformer.network.schema import EdgeType, Schema
from heterformer.network.tokens import PackedTokens


def query_batch(
    schema: Schema,
    tokens: PackedTokens,
    queries: Sequence[Sequence[int]],
    neighbors: Sequence[Mapping[EdgeType, Sequence[int]]],
    second_hop: SecondHop | None = None,
) -> Batch:
    """``queries`` are the token ids of each text; ``neighbors`` has rows of network nodes by edge type."""
    sampled = []
    for number, edge_type in enumerate(schema.edge_types):
        if any(each.get(edge_type) for each in neighbors):
            center, rows = _edges(edge_type, neighbors)
            numbers = np.full(len(rows), number, dtype=np.int16)
            numbered = ((number, edge_type),)
            sampled.append(SampledEdges(edge_type.neighbor, numbered, center, rows.astype(np.int32), numbers))
    batch = assemble(schema, tokens, np.empty(0, dtype=np.int64), sampled, second_hop=second_hop)
    texts = batch.texts
    lengths = torch.tensor([len(query) for query in queries])
    return replace(
        batch,
        texts=Texts(
            torch.cat([texts.tokens, *(torch.tensor(query, dtype=torch.int64) for query in queries)]),
            torch.cat([texts.offsets, texts.offsets[-1] + lengths.cumsum(0)]),
        ),
        centers=torch.arange(len(texts), len(texts) + len(queries)),
        text_rows=None,
    )


def _edges(edge_type: EdgeType, neighbors: Sequence[Mapping[EdgeType, Sequence[int]]]) -> tuple[Ints, Ints]:
    """The distinct edges of one type: positions of queries, ascending, and rows of their neighbours."""
    rows = [np.unique(np.asarray(each.get(edge_type, ()), dtype=np.int64)) for each in neighbors]
    return np.repeat(np.arange(len(rows)), [len(r) for r in rows]), np.concatenate(rows)
