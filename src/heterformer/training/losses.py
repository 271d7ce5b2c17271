"""The training objective (Eq. 13) with in-batch negatives."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from heterformer.models.contract import NodeEncoder


def loss_at_widths(
    model: NodeEncoder,
    queries: Tensor,
    candidates: Tensor,
    false_negatives: Tensor | None = None,
    pair_offset: int = 0,
    pairs: int | None = None,
    relation: str | None = None,
    log_frequencies: Tensor | None = None,
) -> Tensor:
    """The mean of the loss over the model's ``widths``: vectors cut to each must rank the keys, too.

    ``log_frequencies`` (candidates) are taken from the scores, so that vectors learn how likely a link is
    and not how much likelier than the candidate's frequency (the logQ correction of sampled softmax).
    """
    losses = []
    for width in model.widths:
        own, others = (model.shortened(vectors, width) for vectors in (queries, candidates))
        scores = model.scores(own, others, relation)
        scores = scores if log_frequencies is None else scores - log_frequencies
        losses.append(link_prediction_loss(scores, false_negatives, pair_offset, pairs))
    return torch.stack(losses).mean() if len(losses) > 1 else losses[0]


def link_prediction_loss(
    scores: Tensor, false_negatives: Tensor | None = None, pair_offset: int = 0, pairs: int | None = None
) -> Tensor:
    """Eq. 13: the mean over queries of -log softmax of the own key's score among all keys of the batch.

    ``scores`` is (P, P), the own key on the diagonal. Keys marked in ``false_negatives`` are left out
    of the denominator; without it this is the paper's plain form. Of some queries only, from ``pair_offset``
    on among ``pairs``, it is what they add to the mean.
    """
    if false_negatives is not None:
        scores = scores.masked_fill(false_negatives, float("-inf"))
    own = torch.arange(pair_offset, pair_offset + len(scores), device=scores.device)
    if pairs is None or pairs == len(scores):
        return F.cross_entropy(scores.float(), own)
    return F.cross_entropy(scores.float(), own, reduction="sum") / pairs
