"""How an untrained backbone is best read: a look at linked texts, where its files do not tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from heterformer.batches.batch import Texts
from heterformer.metrics import metric_heading
from heterformer.models.plm.layouts import layout_of
from heterformer.models.plm.packing import pack
from heterformer.models.plm.reading import NORMALIZED_TEMPERATURE, PAPER

ALIKE = 0.95  # mean cosine of the [CLS] states of different texts in a layer where they tell little apart
TEXTS = 64  # read at once

Way = tuple[str, str]  # readout and normalize
PAPERS: Way = (PAPER["readout"], PAPER["normalize"])
WAYS: tuple[Way, ...] = (PAPERS, ("cls", "yes"), ("mean", "no"), ("mean", "yes"))


@dataclass(frozen=True)
class Inspection:
    """What was seen of N pairs: which are ranked right among N keys, and how alike inner [CLS] states are."""

    right: dict[Way, NDArray[np.bool_]]  # (N,) each
    cls_similarity: float  # the mean cosine of different texts in the layer where it is largest

    def options(self) -> dict[str, Any]:
        """The options that suit the backbone.

        The paper's way of reading stays unless another one is better beyond chance: by more than two
        deviations of the pairs on which the two differ (McNemar's test).
        """
        best = max(WAYS, key=lambda way: int(self.right[way].sum()))
        gained = int((self.right[best] & ~self.right[PAPERS]).sum())
        lost = int((self.right[PAPERS] & ~self.right[best]).sum())
        readout, normalize = best if gained - lost > 2 * (gained + lost) ** 0.5 else PAPERS
        return {
            "readout": readout,
            "normalize": normalize,
            "temperature": NORMALIZED_TEMPERATURE if normalize == "yes" else 1.0,
            "neighbor_pooling": "mean" if readout == "mean" or self.cls_similarity > ALIKE else "cls",
        }

    def __str__(self) -> str:
        names = {"cls": "[CLS]", "mean": "mean"}, {"no": "", "yes": " normalised"}
        figures = [f"{names[0][w[0]]}{names[1][w[1]]} {right.mean():.3f}" for w, right in self.right.items()]
        pairs = f"{len(self.right[PAPERS])} training pairs"
        ranked = f"untrained {metric_heading('prec')} of {pairs} by {', '.join(figures)}"
        return f"{ranked}; cosine of inner [CLS] states {self.cls_similarity:.2f}"


def inspect_backbone(plm: Any, queries: Sequence[Sequence[int]], keys: Sequence[Sequence[int]]) -> Inspection:
    """Rank each query's own key among all, by the PLM's vectors of their tokens alone."""
    query, key = _read(plm, queries), _read(plm, keys)
    right = {}
    for readout, normalize in WAYS:
        pair = [read[readout] for read in (query, key)]
        if normalize == "yes":
            pair = [F.normalize(each, dim=-1) for each in pair]
        scores = pair[0] @ pair[1].T  # (N, N)
        others = scores.masked_fill(torch.eye(len(scores), dtype=torch.bool), float("-inf"))
        right[readout, normalize] = (scores.diagonal() > others.amax(1)).numpy()  # ties count against it
    return Inspection(right, max((_similarity(states) for states in query["inner"]), default=0.0))


@torch.no_grad()
def _read(plm: Any, texts: Sequence[Sequence[int]]) -> dict[str, Tensor]:
    """Last [CLS] states and means, (N, d), and the [CLS] states that enter later layers, (L, N, d)."""
    parts = []
    for start in range(0, len(texts), TEXTS):
        some = [torch.as_tensor(text) for text in texts[start : start + TEXTS]]
        lengths = torch.tensor([len(text) for text in some])
        packing = pack(Texts(torch.cat(some), F.pad(lengths.cumsum(0), (1, 0))))
        layout = layout_of(plm, packing)
        hidden, inner = layout.embed(), []
        for depth in range(len(layout.layers)):
            if depth:
                inner.append(hidden[packing.first_token][packing.rank])
            hidden = layout.run_layer(depth, hidden)
        last = hidden[packing.first_token][packing.rank]
        inner_states = torch.stack(inner) if inner else last.new_empty(0, *last.shape)
        parts.append((last, packing.mean(hidden)[packing.rank], inner_states))
    cls, mean, states = zip(*parts, strict=True)
    return {"cls": torch.cat(cls), "mean": torch.cat(mean), "inner": torch.cat(states, 1)}


def _similarity(states: Tensor) -> float:
    """The mean cosine of different rows."""
    states, n = F.normalize(states, dim=-1), len(states)
    return float(states.sum(0).square().sum() - n) / max(1, n * (n - 1))
