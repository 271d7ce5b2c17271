"""A batch of texts that are no nodes of the network, with neighbours that are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch

from heterformer.arrays import Ints
from heterformer.batches.batch import Batch, Neighbors, Texts
from heterformer.network.schema import EdgeType, Schema
from heterformer.network.tokens import PackedTokens


def query_batch(
    schema: Schema,
    tokens: PackedTokens,
    queries: Sequence[Sequence[int]],
    neighbors: Sequence[Mapping[EdgeType, Sequence[int]]],
) -> Batch:
    """``queries`` are the token ids of each text; ``neighbors`` has rows of network nodes by edge type."""
    edges = {e: _edges(e, neighbors) for e in schema.edge_types if any(n.get(e) for n in neighbors)}
    none = np.empty(0, dtype=np.int64)
    textless = {
        t: np.unique(np.concatenate([none, *(rows for e, (_, rows) in edges.items() if e.neighbor == t)]))
        for t in schema.textless
    }
    numbers = {
        e: r + tokens.text_offset[e.neighbor]
        for e, (_, r) in edges.items()
        if e.neighbor in tokens.text_offset
    }
    texts = np.unique(np.concatenate([none, *numbers.values()]))
    packed, offsets = tokens.gather(texts)
    lengths = np.array([len(query) for query in queries], dtype=np.int64)
    packed = np.concatenate([packed, *(np.asarray(query, dtype=np.int64) for query in queries)])
    offsets = np.concatenate([offsets, offsets[-1] + np.cumsum(lengths)])
    nodes = {
        e: np.searchsorted(texts, numbers[e]) if e in numbers else np.searchsorted(textless[e.neighbor], rows)
        for e, (_, rows) in edges.items()
    }
    return Batch(
        texts=Texts(torch.from_numpy(packed), torch.from_numpy(offsets)),
        neighbor_texts=len(texts),
        centers=torch.arange(len(texts), len(texts) + len(queries)),
        neighbors={
            e: Neighbors(torch.from_numpy(centers), torch.from_numpy(nodes[e]))
            for e, (centers, _) in edges.items()
        },
        textless={t: torch.from_numpy(rows) for t, rows in textless.items() if len(rows)},
    )


def _edges(edge_type: EdgeType, neighbors: Sequence[Mapping[EdgeType, Sequence[int]]]) -> tuple[Ints, Ints]:
    """The distinct edges of one type: positions of queries, ascending, and rows of their neighbours."""
    rows = [np.unique(np.asarray(each.get(edge_type, ()), dtype=np.int64)) for each in neighbors]
    return np.repeat(np.arange(len(rows)), [len(r) for r in rows]), np.concatenate(rows)
