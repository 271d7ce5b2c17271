"""Network readout: one aggregation more, after the last layer. It is ours, not the paper's.

Virtual neighbour tokens must change what the PLM says of a text before they change its vector. The readout
adds the neighbours to the vector itself, ``h + g_tr z_tr + g_tl z_tl``: what a cascade of PLM and graph
convolution has from the first step, on top of what nesting learns. ``z`` is the attention of Eq. 6 to 8 over
the neighbours' final vectors and the textless neighbours; the gates ``g`` are learnt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from heterformer.models.aggregation import Aggregation, Neighborhoods

GATES = {"text_rich": 1.0, "textless": 0.3}  # where they start


class NetworkReadout(nn.Module):
    """Adds what the neighbours of each kind say to the centres' vectors."""

    def __init__(self, kinds: Sequence[str], width: int, heads: int, layer: int) -> None:
        super().__init__()
        self.layer = layer  # the place of the final vectors among a text's states
        self.aggregations = nn.ModuleDict({kind: Aggregation(width, heads) for kind in kinds})
        self.gates = nn.ParameterDict({kind: nn.Parameter(torch.tensor([GATES[kind]])) for kind in kinds})

    def forward(self, vectors: Tensor, neighborhoods: Mapping[str, Neighborhoods]) -> Tensor:
        """(B, d) to (B, d)."""
        result = vectors
        for kind, aggregation in self.aggregations.items():
            messages = neighborhoods[kind].messages_at(self.layer)  # (E, d)
            result = result + self.gates[kind] * aggregation(vectors, messages, neighborhoods[kind])
        return result
