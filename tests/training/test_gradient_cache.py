"""Gradients of a large batch, slice by slice, are those of one graph over all of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from heterformer.batches.batch import PairBatch, PairVectors
from heterformer.batches.randomness import stream_key
from heterformer.batches.slices import slices
from heterformer.errors import InputError
from heterformer.models.options import ModelName
from heterformer.models.registry import MODELS
from heterformer.training.learner import DROPOUT
from heterformer.training.loop import Trainer
from heterformer.training.losses import link_prediction_loss
from heterformer.training.optimizers import Optimizers
from heterformer.training.run import Run
from tests.learning import tiny_network
from tests.training.runs import STEPS, assert_same_run, differ, options, trained

PAIRS, MICRO = 16, 5  # slices of 5, 5, 5 and 1


def new_trainer(path: Path, **changes: Any) -> Trainer:
    run, asked = Run(path), options(**changes)
    run.start(tiny_network(), asked)
    trainer = Trainer(tiny_network(), run, asked)
    trainer.model.prepare(trainer.validation.tokens, trainer.tokenizer.all_special_ids)
    return trainer


def gradients(model: torch.nn.Module) -> dict[str, Tensor]:
    return {n: p.grad.to_dense().clone() for n, p in model.named_parameters() if p.grad is not None}


def without_dropout(trainer: Trainer, monkeypatch: pytest.MonkeyPatch) -> None:
    trainer.model.eval()
    monkeypatch.setattr(trainer.model, "train", lambda mode=True: trainer.model)


def stepped(
    trainer: Trainer, batch: PairBatch, monkeypatch: pytest.MonkeyPatch
) -> tuple[float, dict[str, Tensor]]:
    """The loss and the gradients that the optimisers are given."""
    found: dict[str, Tensor] = {}
    with monkeypatch.context() as patched:
        patched.setattr(Optimizers, "step", lambda self, factor: found.update(gradients(trainer.model)))
        return trainer._step(trainer.slice_batch(batch)), found


def in_one_graph(trainer: Trainer, batch: PairBatch) -> tuple[float, dict[str, Tensor]]:
    """The loss of the vectors of all slices, each with its own dropout, nothing being computed twice."""
    model = trainer.model
    parts: list[PairVectors] = []
    model.train()
    with trainer.autocast():
        for part in slices(batch, MICRO):
            place = [part.pair_offset] if part.pair_offset else []
            torch.manual_seed(int(stream_key(DROPOUT, 0, 0, *place) >> np.uint64(1)))
            parts.append(part.by_role(model.encode_batch(part)))
        queries, keys = (torch.cat([getattr(part, side) for part in parts]) for side in ("queries", "keys"))
        loss = link_prediction_loss(model.scores(queries, keys), batch.false_negatives)
    loss.backward()  # type: ignore[no-untyped-call]
    found = gradients(model)
    trainer.optimizers.zero_grad()
    return loss.item(), found


def assert_close(found: dict[str, Tensor], expected: dict[str, Tensor], rounding: float = 1e-5) -> None:
    """To 1e-5 of a gradient's largest entry. Some gradients are zero but for the rounding of large terms."""
    assert found.keys() == expected.keys()
    largest = max(float(gradient.abs().max()) for gradient in expected.values())
    for name, gradient in expected.items():
        atol = rounding * float(gradient.abs().max()) + 0.1 * rounding * largest
        torch.testing.assert_close(
            found[name], gradient, rtol=rounding, atol=atol, msg=lambda m, n=name: f"{n}: {m}"
        )


@pytest.mark.parametrize("name", list(MODELS))
def test_gradients_with_dropout_are_those_of_one_graph(
    name: ModelName, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = new_trainer(tmp_path / "run", model=name, micro_batch=MICRO, textless_dim=64)
    batch = trainer.batches.batch(0, 0)
    expected_loss, expected = in_one_graph(trainer, batch)
    loss, found = stepped(trainer, batch, monkeypatch)
    assert loss == pytest.approx(expected_loss, rel=1e-5)
    assert_close(found, expected)
    if name == "heterformer":  # dropout was on
        trainer.options = options(seed=1, micro_batch=MICRO)
        assert stepped(trainer, batch, monkeypatch)[0] != pytest.approx(loss, rel=1e-4)


@pytest.mark.parametrize("name", list(MODELS))
def test_gradients_without_dropout_are_those_of_the_plain_batch(
    name: ModelName, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = new_trainer(tmp_path / "run", model=name, micro_batch=MICRO, textless_dim=64)
    without_dropout(trainer, monkeypatch)
    batch = trainer.batches.batch(0, 0)
    loss, found = stepped(trainer, batch, monkeypatch)
    trainer.optimizers.zero_grad()
    trainer.options = options(model=name, textless_dim=64)  # which all models can be told
    plain_loss, plain = stepped(trainer, batch, monkeypatch)
    assert loss == pytest.approx(plain_loss, rel=1e-5)
    assert_close(found, plain)


def test_gradients_in_mixed_precision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = new_trainer(tmp_path / "run", micro_batch=MICRO)
    half = torch.autocast("cpu", torch.bfloat16)
    monkeypatch.setattr(trainer, "autocast", lambda: half)
    batch = trainer.batches.batch(0, 0)
    expected_loss, expected = in_one_graph(trainer, batch)
    loss, found = stepped(trainer, batch, monkeypatch)
    assert loss == expected_loss  # both passes round alike
    assert_close(found, expected, rounding=2**-8)
    monkeypatch.undo()
    assert in_one_graph(trainer, batch)[0] != loss


def test_a_slice_of_cached_states(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = new_trainer(tmp_path / "run", neighbor_states="cached", micro_batch=MICRO)
    without_dropout(trainer, monkeypatch)
    assert trainer.cached is not None
    list(trainer.cached.refresh(0, 1))
    batch = trainer.batches.batch(0, 0)
    loss, found = stepped(trainer, batch, monkeypatch)
    trainer.optimizers.zero_grad()
    trainer.options = options()
    plain_loss, plain = stepped(trainer, batch, monkeypatch)
    assert loss == pytest.approx(plain_loss, rel=1e-5)
    assert_close(found, plain)


def test_no_more_than_a_micro_batch_is_encoded_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = new_trainer(tmp_path / "run", micro_batch=MICRO)
    encode, met = trainer.model.encode_batch, []

    def recorded(batch: PairBatch) -> Tensor:
        met.append((batch.pairs, torch.is_grad_enabled()))
        return encode(batch)

    monkeypatch.setattr(trainer.model, "encode_batch", recorded)
    trainer._step(trainer.slice_batch(trainer.batches.batch(0, 0)))
    sizes = [5, 5, 5, 1]
    assert met == [(size, False) for size in sizes] + [(size, True) for size in sizes]


def test_a_run_in_micro_batches_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    whole = trained(tmp_path / "whole", micro_batch=MICRO)
    for steps in (7, STEPS):
        run = trained(tmp_path / "run", micro_batch=MICRO, max_steps=steps)
    assert not differ(run, whole)
    assert differ(run, trained(tmp_path / "plain"))  # other dropout
    assert_same_run(trained(tmp_path / "one", micro_batch=PAIRS), trained(tmp_path / "plain"))


def test_a_micro_batch_is_no_larger_than_the_batch() -> None:
    assert options(micro_batch=PAIRS).micro_batch == PAIRS
    with pytest.raises(InputError, match=r"^micro_batch is 17, expected at most batch_size, which is 16"):
        options(micro_batch=17)
    with pytest.raises(InputError, match=r"^micro_batch is 0, expected more than 0 or None\.$"):
        options(micro_batch=0)


def test_sparse_gradients_do_not_pile_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After many slices a table's gradient has each touched row once, not once for each time it was met."""
    trainer = new_trainer(tmp_path / "run", micro_batch=2)
    kept: dict[str, int] = {}
    distinct: dict[str, int] = {}

    def count(self: Optimizers, factor: float) -> None:
        for name, parameter in trainer.model.named_parameters():
            if parameter.grad is not None and parameter.grad.is_sparse:
                kept[name] = parameter.grad._nnz()
                distinct[name] = len(torch.unique(parameter.grad._indices()[0]))

    monkeypatch.setattr(Optimizers, "step", count)
    trainer._step(trainer.slice_batch(trainer.batches.batch(0, 0)))
    assert len(kept) > 2  # tokens, authors, venues
    assert kept == distinct
