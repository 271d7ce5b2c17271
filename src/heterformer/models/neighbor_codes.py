"""Neighbour codes: nodes that have the same neighbours become alike, beyond what the neighbours' texts say.

A mean of neighbours' vectors says what they are about. Whether two nodes have the very same neighbours, which
says more than that, is lost in it: any two papers on a subject are nearly as close as a paper is to itself.
The codes of different texts are nearly orthogonal. They are functions of the texts and not learnt, so that
nodes which training has not seen have theirs. It is ours, not the paper's.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import torch
from torch import Tensor, nn

from heterformer.batches.batch import Batch
from heterformer.network.hashes import mixed
from heterformer.network.schema import NodeType

START = 0.4  # of the gate, see docs/results.md


class NeighborCodes(nn.Module):
    """``h + g |h| sum_{j in N} c_j / sqrt(|N|)`` over all text-rich neighbours, ``g`` a learnt gate.

    ``c_j`` is neighbour ``j``'s code, of length 1. The sum's length is about 1 however many there are, so
    that the inner product of two of them is about the cosine of the two neighbourhoods.
    """

    def __init__(self, width: int, neighbor_types: Collection[NodeType]) -> None:
        super().__init__()
        self.neighbor_types = frozenset(neighbor_types)
        self.gate = nn.Parameter(torch.tensor([START]))
        factors = mixed(np.arange(width, dtype=np.uint64)) | np.uint64(1)
        self.factors = factors.view(np.int64)

    def forward(self, batch: Batch, vectors: Tensor) -> Tensor:
        """(B, d) to (B, d), both in the order of the batch's centres."""
        edges = [edges for r, edges in batch.neighbors.items() if r.neighbor in self.neighbor_types]
        none = batch.centers[:0]
        center = torch.cat([none, *(e.center for e in edges)])  # (E,)
        node, place = torch.unique(torch.cat([none, *(e.node for e in edges)]), return_inverse=True)
        dtype = torch.promote_types(vectors.dtype, torch.float32)
        codes = self.codes(batch.texts.content_hashes()[node], dtype)[place]  # (E, d)
        total = codes.new_zeros(vectors.shape).index_add(0, center, codes)
        count = torch.bincount(center, minlength=len(vectors)).clamp(min=1).to(dtype)
        length = vectors.to(dtype).norm(dim=-1, keepdim=True)
        added: Tensor = self.gate * length * total / count.sqrt()[:, None]
        return vectors + added

    def codes(self, hashes: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """(n, d): a code of length 1 for each hash, all of whose numbers are alike but for their signs."""
        factors = torch.from_numpy(self.factors).to(hashes.device)
        is_high = hashes[:, None] * factors < 0  # the highest bit of a product that wraps around
        codes: Tensor = (1 - 2 * is_high.to(dtype)) / len(factors) ** 0.5
        return codes
