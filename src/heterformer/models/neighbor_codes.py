"""Neighbour codes: nodes that have the same neighbours become alike, beyond what the neighbours' texts say.

A mean of neighbours' vectors says what they are about. Whether two nodes have the very same neighbours is
lost in it: two nodes with different neighbours on one subject have nearly the same mean. Codes of different
texts are nearly orthogonal. They are functions of the texts and not learnt, so that nodes which training has
not seen have theirs. They are ours, not the paper's.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import torch
from torch import Tensor, nn

from heterformer.batches.batch import Batch
from heterformer.network.hashes import mixed
from heterformer.network.schema import NodeType

START = 0.3  # of the gate; see "Neighbour codes" in docs/results.md


class NeighborCodes(nn.Module):
    """``h + g |h| c / sqrt(|c|^2 + 1)``, ``c = sum_{j in N} c_j`` over text-rich neighbours, ``g`` learnt.

    ``c_j`` is neighbour ``j``'s code, of length 1. The inner product of two such sums is about the cosine of
    the two neighbourhoods: how many neighbours they share, among all that they have and one more, since to
    share one's only neighbour says little. What is added is shorter than ``g |h|``.
    """

    def __init__(self, width: int, neighbor_types: Collection[NodeType]) -> None:
        super().__init__()
        self.neighbor_types = frozenset(neighbor_types)
        self.gate = nn.Parameter(torch.tensor([START]))
        factors = mixed(np.arange(width, dtype=np.uint64)) | np.uint64(1)
        self.factors = factors.view(np.int64)

    def forward(self, batch: Batch, vectors: Tensor) -> Tensor:
        """(B, d) to (B, d), both in the order of the batch's centres."""
        none, texts = batch.centers[:0], len(batch.texts)
        edges = (edges for r, edges in batch.neighbors.items() if r.neighbor in self.neighbor_types)
        pairs = torch.unique(torch.cat([none, *(e.center * texts + e.node for e in edges)]))  # each once
        center, node = pairs // texts, pairs % texts
        dtype = torch.promote_types(vectors.dtype, torch.float32)
        codes = self.codes(batch.texts.content_hashes()[node], dtype)  # (E, d)
        total = codes.new_zeros(vectors.shape).index_add(0, center, codes)
        total = total / (total.square().sum(-1, keepdim=True) + 1).sqrt()
        added: Tensor = self.gate * vectors.norm(dim=-1, keepdim=True) * total.to(vectors.dtype)
        return vectors + added

    def codes(self, hashes: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """(n, d): a code of length 1 for each hash, whose numbers are alike but for their signs."""
        factors = torch.from_numpy(self.factors).to(hashes.device)
        is_high = hashes[:, None] * factors < 0  # the highest bit of a product that wraps around
        codes: Tensor = (1 - 2 * is_high.to(dtype)) / len(factors) ** 0.5
        return codes
