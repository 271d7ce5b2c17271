"""Validation in the run's precision."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from heterformer.batches.batcher import Batcher
from heterformer.batches.visible import VisibleNetwork
from heterformer.models import Heterformer
from heterformer.network.split.draw import make_split
from heterformer.training.validation import in_batch_metrics
from tests.learning import tiny_model, tiny_network, tiny_tokens


def test_vectors_are_computed_in_the_precision_and_scores_in_single(monkeypatch: pytest.MonkeyPatch) -> None:
    split = make_split(tiny_network())
    batcher = Batcher(VisibleNetwork.for_evaluation(tiny_network(), split), tiny_tokens())
    model = tiny_model()
    seen: dict[str, list[Any]] = {"vectors": [], "scores": []}
    forward, scores = Heterformer.forward, Heterformer.scores

    def recorded(self: Heterformer, batch: Any, states: Tensor) -> Tensor:
        seen["vectors"].append(torch.is_autocast_enabled("cpu"))
        return forward(self, batch, states)

    def scored(self: Heterformer, queries: Tensor, keys: Tensor) -> Tensor:
        found = scores(self, queries, keys)
        seen["scores"].append((torch.is_autocast_enabled("cpu"), found.dtype))
        return found

    monkeypatch.setattr(Heterformer, "forward", recorded)
    monkeypatch.setattr(Heterformer, "scores", scored)

    def figures(precision: AbstractContextManager[object] | None) -> dict[str, float]:
        return in_batch_metrics(model, batcher, split.validation, 100, 0, precision=precision)

    single = figures(None)
    assert set(seen["vectors"]) == {False}
    seen["vectors"].clear()
    half = figures(torch.autocast("cpu", torch.bfloat16))
    assert set(seen["vectors"]) == {True}
    assert set(seen["scores"]) == {(False, torch.float32)}
    assert np.isclose(single["mrr"], half["mrr"], atol=0.1)
