"""A batch of one text that is no node of the network, with neighbours that are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch

from heterformer.batches.batch import Batch, Neighbors, Texts
from heterformer.network.schema import EdgeType, Schema
from heterformer.network.tokens import PackedTokens


def query_batch(
    schema: Schema, tokens: PackedTokens, query: Sequence[int], neighbors: Mapping[EdgeType, Sequence[int]]
) -> Batch:
    """``query`` is a text's token ids; ``neighbors`` gives rows of network nodes by edge type."""
    chosen = {e: np.unique(np.asarray(rows, dtype=np.int64)) for e, rows in neighbors.items() if len(rows)}
    none = np.empty(0, dtype=np.int64)
    textless = {
        t: np.unique(np.concatenate([none, *(rows for e, rows in chosen.items() if e.neighbor == t)]))
        for t in schema.textless
    }
    numbers = {e: rows + tokens.first[e.neighbor] for e, rows in chosen.items() if e.neighbor in tokens.first}
    texts = np.unique(np.concatenate([none, *numbers.values()]))
    packed, offsets = tokens.gather(texts)
    packed = np.concatenate([packed, np.asarray(query, dtype=np.int64)])
    offsets = np.append(offsets, len(packed))
    positions = {
        e: np.searchsorted(texts, numbers[e]) if e in numbers else np.searchsorted(textless[e.neighbor], rows)
        for e, rows in chosen.items()
    }
    return Batch(
        texts=Texts(torch.from_numpy(packed), torch.from_numpy(offsets)),
        neighbor_texts=len(texts),
        centers=torch.tensor([len(texts)]),
        neighbors={
            e: Neighbors(torch.zeros(len(p), dtype=torch.int64), torch.from_numpy(p))
            for e, p in positions.items()
        },
        textless={t: torch.from_numpy(rows) for t, rows in textless.items() if len(rows)},
    )
