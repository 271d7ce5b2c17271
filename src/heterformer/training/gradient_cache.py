"""Large batches in little memory: gradient caching (GradCache, Gao et al. 2021).

In-batch negatives make every vector of a batch matter to every other, but only through the loss. So all
vectors are computed without a graph, slice by slice; the loss gives their gradients; and each slice is
computed once more, now with a graph, which takes its part of them. Memory is that of one slice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from heterformer.batches.batch import PairBatch, PairVectors

Encode = Callable[[PairBatch], Tensor]  # centres to vectors, (2p + n, d); equal calls draw equal dropout


def pair_vectors(slices: Sequence[PairBatch], encode: Encode, empty: Tensor) -> PairVectors:
    """The vectors of all slices, by role; ``empty``, (0, d), stands for each role if there is no slice.

    A single slice keeps its graph. Several have none: the vectors collect gradients for ``replay``.
    """
    if len(slices) == 1:
        return slices[0].by_role(encode(slices[0]))
    with torch.no_grad():
        parts = [part.by_role(encode(part)) for part in slices] or [PairVectors(empty, empty, empty)]
    return PairVectors(*(torch.cat(role).requires_grad_() for role in zip(*parts, strict=True)))


def replay(
    slices: Sequence[PairBatch],
    encode: Encode,
    vectors: PairVectors,
    tables: Sequence[nn.Parameter] = (),
) -> None:
    """After the loss's backward pass: hand the gradients of the vectors down to the parameters.

    Sparse gradients of ``tables`` are added up after each slice: PyTorch would keep the rows of all of them.
    """
    if len(slices) == 1:
        return
    gradients = [torch.zeros_like(v) if v.grad is None else v.grad for v in vectors]
    start = [0] * len(gradients)  # of the slice's vectors of each role
    for part in slices:
        encoded = encode(part)  # (2p + n, d), the same as before
        stop = [a + len(role) for a, role in zip(start, part.by_role(encoded), strict=True)]
        own = [gradient[a:b] for gradient, a, b in zip(gradients, start, stop, strict=True)]
        torch.autograd.backward(encoded, torch.cat(own))
        for table in tables:
            if table.grad is not None:
                table.grad = table.grad.coalesce()
        start = stop
