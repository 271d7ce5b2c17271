"""Vectors of many nodes at once, without gradients: every text is read once, then every centre."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heterformer.batches.batch import Batch, Texts
from heterformer.batches.batcher import Batcher
from heterformer.models.backbone import text_vectors
from heterformer.models.contract import NodeEncoder
from heterformer.models.packing import pack
from heterformer.network.schema import NodeType
from heterformer.network.tokens import PackedTokens

Ints = NDArray[np.int64]
StoredStates = NDArray[np.float32]  # (texts, S, d), a row for every text of the network
CENTERS, BLOCK = 256, 2048  # nodes per batch, and nodes whose neighbours' states are held together
TOKENS = 8192  # per batch of texts: enough for full-sized products, little enough for any memory


def center_vectors(
    model: NodeEncoder,
    batcher: Batcher,
    node_type: NodeType,
    rows: Ints,
    key: np.uint64,
    states: StoredStates | None = None,
) -> Tensor:
    """(n, d): the vectors of text-rich nodes under the fixed neighbour sample of ``key``.

    Two passes for every few thousand nodes: the states of their distinct neighbour texts first (unless
    they are stored already), then the centres themselves.
    """
    blocks = [rows[i : i + BLOCK] for i in range(0, len(rows), BLOCK)]
    return torch.cat([_block_vectors(model, batcher, node_type, block, key, states) for block in blocks])


def _block_vectors(
    model: NodeEncoder,
    batcher: Batcher,
    node_type: NodeType,
    rows: Ints,
    key: np.uint64,
    stored: StoredStates | None,
) -> Tensor:
    chunks = [rows[i : i + CENTERS] for i in range(0, len(rows), CENTERS)]
    met = [_neighbor_numbers(batcher.nodes(node_type, chunk, key)) for chunk in chunks]
    numbers = np.unique(np.concatenate([*met, np.empty(0, dtype=np.int64)]))
    vectors = []
    with evaluating(model):
        if stored is None:
            states = each_text(model.text_states, batcher.tokens, numbers, model.device)  # (N, S, d)
        else:
            states = torch.from_numpy(stored[numbers])
        for chunk in chunks:
            batch = batcher.nodes(node_type, chunk, key)
            place = torch.from_numpy(np.searchsorted(numbers, _neighbor_numbers(batch)))
            vectors.append(model(batch.to(model.device), states[place].to(model.device)).float().cpu())
    return torch.cat(vectors)


def plm_vectors(model: NodeEncoder, tokens: PackedTokens, numbers: Ints) -> Tensor:
    """(n, d): what the plain PLM says of texts, without any network (the paper's h-bar of Eq. 10)."""

    def read(texts: Texts) -> Tensor:
        return text_vectors(model.backbone, pack(texts), model.config.readout)

    with evaluating(model):
        return each_text(read, tokens, numbers, model.device)


def each_text(
    read: Callable[[Texts], Tensor], tokens: PackedTokens, numbers: Ints, device: torch.device
) -> Tensor:
    """Apply ``read`` to the numbered texts, in batches of similar length, and return rows in their order."""
    lengths = tokens.offsets[numbers + 1] - tokens.offsets[numbers]
    order = np.argsort(lengths, kind="stable")
    ends = np.cumsum(lengths[order])
    found: Tensor | None = None
    start = 0
    with torch.no_grad():
        while start < len(order) or found is None:
            done = int(ends[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, done + TOKENS, side="right")))
            chosen = order[start:stop]
            packed, offsets = tokens.gather(numbers[chosen])
            texts = Texts(torch.from_numpy(packed).to(device), torch.from_numpy(offsets).to(device))
            values = read(texts).float().cpu()
            if found is None:
                found = torch.empty(len(numbers), *values.shape[1:])
            found[torch.from_numpy(chosen)] = values
            start = stop
    return found


class evaluating:  # noqa: N801 - reads as a statement
    """``with evaluating(model):`` no dropout and no gradients inside; the mode is restored afterwards."""

    def __init__(self, model: NodeEncoder) -> None:
        self.model = model
        self._mode = torch.no_grad()

    def __enter__(self) -> None:
        self._training = self.model.training
        self.model.eval()
        self._mode.__enter__()

    def __exit__(self, *error: object) -> None:
        self._mode.__exit__(*error)
        self.model.train(self._training)


def _neighbor_numbers(batch: Batch) -> Ints:
    assert batch.text_numbers is not None
    numbers: Ints = batch.text_numbers[: batch.neighbor_texts].numpy()
    return numbers
