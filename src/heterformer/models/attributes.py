"""What attributes of nodes add to a vector."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers import initialization as init

from heterformer.network.encoding import TypeEncoding


class AttributeEncoder(nn.Module):
    """``A x``: a linear map of standardised numbers plus an embedding of each category. Starts at zero."""

    def __init__(self, encoding: TypeEncoding, width: int) -> None:
        super().__init__()
        self.numbers = nn.Parameter(torch.empty(width, 2 * len(encoding.numeric)))
        self.categories = nn.Parameter(torch.empty(int(encoding.offsets[-1]), width))

    def forward(self, numbers: Tensor, categories: Tensor) -> Tensor:
        """(n, F) numbers and (n, C) places of categories to (n, width)."""
        encoded = numbers.to(self.numbers.dtype) @ self.numbers.T
        if categories.shape[1]:
            encoded = encoded + self.categories[categories].sum(1)
        return encoded

    def initialize(self) -> None:
        """At zero: a node starts as it would without attributes."""
        init.zeros_(self.numbers)
        init.zeros_(self.categories)
