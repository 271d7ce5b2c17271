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
from torch.nn import functional as F

from heterformer.batches.batch import Batch
from heterformer.network.hashes import mixed
from heterformer.network.schema import NodeType

START = 0.4  # of the gate; see "Neighbour codes" in docs/results.md


class NeighborCodes(nn.Module):
    """``h + g |h| c / |c|``, ``c = sum_{j in N} c_j`` over all text-rich neighbours, ``g`` a learnt gate.

    ``c_j`` is neighbour ``j``'s code. The inner product of two such sums of length 1 is about the cosine of
    the two neighbourhoods: how many neighbours they share. Unlike in Eq. 6 a node is not among its own
    neighbours: its code would be noise to all nodes but those next to it (docs/results.md).
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
        codes = self.codes(batch.texts.content_hashes()[node])  # (E, d)
        total = codes.new_zeros(vectors.shape).index_add(0, center, codes)
        total = F.normalize(total.to(torch.promote_types(vectors.dtype, total.dtype)), dim=-1)
        added: Tensor = self.gate * vectors.norm(dim=-1, keepdim=True) * total.to(vectors.dtype)
        return vectors + added

    def codes(self, hashes: Tensor) -> Tensor:
        """(n, d): a code for each hash, of 1 and -1."""
        factors = torch.from_numpy(self.factors).to(hashes.device)
        is_high = hashes[:, None] * factors < 0  # the highest bit of a product that wraps around
        codes: Tensor = 1.0 - 2.0 * is_high
        return codes
