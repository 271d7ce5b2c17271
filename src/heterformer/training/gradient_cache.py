"""Large batches in little memory: gradient caching (GradCache, Gao et al. 2021).

In-batch negatives make every vector of a batch matter to every other, but only through the loss. So all
vectors are computed without a graph, slice by slice; the loss gives their gradients; and each slice is
computed once more, now with a graph, which takes its part of them. Memory is that of one slice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from heterformer.batches.batch import Batch

Encode = Callable[[Batch], Tensor]  # pairs to vectors, (2p, d); equal calls must draw equal dropout


def pair_vectors(slices: Sequence[Batch], encode: Encode, empty: Tensor) -> tuple[Tensor, Tensor]:
    """(P, d) queries and (P, d) keys of all slices; ``empty``, (0, d), stands for both if there is none.

    A single slice keeps its graph. Several have none: the vectors collect gradients for ``replay``.
    """
    if len(slices) == 1:
        queries, keys = encode(slices[0]).chunk(2)
        return queries, keys
    with torch.no_grad():
        parts = [encode(part).chunk(2) for part in slices]
    queries, keys = (torch.cat([part[side] for part in parts] or [empty]) for side in (0, 1))
    return queries.requires_grad_(), keys.requires_grad_()


def replay(
    slices: Sequence[Batch],
    encode: Encode,
    queries: Tensor,
    keys: Tensor,
    tables: Sequence[nn.Parameter] = (),
) -> None:
    """After the loss's backward pass: hand the gradients of the vectors down to the parameters.

    Sparse gradients of ``tables`` are added up after each slice: PyTorch would keep the rows of all of them.
    """
    if len(slices) == 1:
        return
    assert queries.grad is not None
    assert keys.grad is not None
    start = 0
    for part in slices:
        vectors = encode(part)  # (2p, d), the same as before
        stop = start + len(vectors) // 2
        gradient = torch.cat([queries.grad[start:stop], keys.grad[start:stop]])
        torch.autograd.backward(vectors, gradient)
        for table in tables:
            if table.grad is not None:
                table.grad = table.grad.coalesce()
        start = stop
