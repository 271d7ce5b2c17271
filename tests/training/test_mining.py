"""Hard negatives: which are mined, and training on them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from heterformer.batches.hard_negatives import known_neighbors
from heterformer.batches.visible import VisibleNetwork
from heterformer.errors import InputError
from heterformer.models.inference import each_text, evaluating
from heterformer.network.split.draw import make_split
from heterformer.network.split.options import SplitOptions
from heterformer.training.loop import Trainer
from heterformer.training.mining import candidates, mine
from heterformer.training.optimizers import Optimizers
from heterformer.training.options import TrainingOptions
from heterformer.training.run import Run
from tests.learning import tiny_network, tiny_tokens
from tests.training.runs import Killed, assert_same_run, differ, dying_at_rename, options, trained

MINED: dict[str, Any] = {
    "neighbor_states": "cached",
    "refresh_every": 4,
    "hard_negatives": 2,
    "max_steps": 10,
    "evaluate_every": 3,
}


def new_trainer(path: Path, **changes: Any) -> Trainer:
    asked = options(**MINED | changes)
    run = Run(path)
    run.start(tiny_network(), asked)
    return Trainer(tiny_network(), run, asked)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return trained(tmp_path_factory.mktemp("whole") / "run", **MINED)


# --- What is mined ----------------------------------------------------------------------------------------


def test_negatives_are_of_the_band_and_no_known_neighbours() -> None:
    split = make_split(tiny_network())
    visible = VisibleNetwork.for_training(tiny_network(), split)
    rng = torch.Generator().manual_seed(0)
    vectors = torch.randn(200, 8, generator=rng)
    queries, nodes = np.arange(0, 200, 2), np.arange(200)
    found = mine(visible, queries, vectors[queries], nodes, vectors, 3, seed=0, step=4, band=(5, 20))
    place, known = known_neighbors(visible, queries)
    for i, query in enumerate(queries):
        excluded = set(known[place == i].tolist())
        assert int(query) in excluded
        order = np.argsort(-(vectors @ vectors[query]).numpy(), kind="stable")
        band = [int(n) for n in order if int(n) not in excluded][5:20]
        assert len(set(found.rows[i].tolist())) == 3
        assert set(found.rows[i].tolist()) <= set(band)
    again = mine(visible, queries, vectors[queries], nodes, vectors, 3, seed=0, step=4, band=(5, 20))
    assert np.array_equal(found.rows, again.rows)
    half = mine(visible, queries[50:], vectors[queries[50:]], nodes, vectors, 3, seed=0, step=4, band=(5, 20))
    assert np.array_equal(found.rows[50:], half.rows)
    later = mine(visible, queries, vectors[queries], nodes, vectors, 3, seed=0, step=8, band=(5, 20))
    assert not np.array_equal(found.rows, later.rows)


def test_a_held_out_key_is_mined_as_any_other_node() -> None:
    """That an edge exists and is held out must not be seen from what is mined."""
    split = make_split(tiny_network())
    visible = VisibleNetwork.for_training(tiny_network(), split)
    queries, keys = split.test[:20].T
    vectors = torch.zeros(200, 1)
    vectors[keys] = 1.0  # the closest of all
    nodes = np.arange(200)
    order = np.argsort(queries)
    ones = torch.ones(len(queries), 1)
    found = mine(visible, queries[order], ones, nodes, vectors, 40, seed=0, step=0, band=(0, 30))
    assert all(key in row for key, row in zip(keys[order], found.rows, strict=True))


def test_fewer_than_asked_for_are_gaps() -> None:
    split = make_split(tiny_network())
    visible = VisibleNetwork.for_training(tiny_network(), split)
    nodes = np.arange(12)
    found = mine(visible, nodes, torch.ones(12, 1), nodes, torch.ones(12, 1), 5, seed=0, step=0)
    assert found.rows.shape == (12, 5)
    assert ((found.rows >= 0).sum(1) <= 1).all()  # the eleventh and twelfth at most, but not oneself


def test_hidden_nodes_are_no_candidates_and_many_are_sampled() -> None:
    split = make_split(tiny_network(), SplitOptions(hold_out=0.2))
    visible = VisibleNetwork.for_training(tiny_network(), split)
    hidden = visible.hidden["paper"]
    assert len(hidden)
    rows = candidates(visible, 0, 0)
    assert not set(rows.tolist()) & set(hidden.tolist())
    assert len(rows) + len(hidden) == 200
    some = candidates(visible, 0, 0, most=50)
    assert len(some) == 50
    assert set(some.tolist()) < set(rows.tolist())
    assert some.tolist() == sorted(some.tolist())
    assert some.tolist() != candidates(visible, 0, 4, most=50).tolist()


@pytest.mark.parametrize("readout", ["none", "both"])
def test_vectors_are_those_of_texts_alone(readout: str, tmp_path: Path) -> None:
    trainer = new_trainer(tmp_path / "run", network_readout=readout, normalize="yes", temperature=0.1)
    assert trainer.cached is not None
    list(trainer.cached.refresh(0, 10))
    rows = np.array([3, 100, 7])
    with evaluating(trainer.model):
        expected = each_text(trainer._text_vectors, tiny_tokens(), rows, torch.device("cpu"))
    expected = torch.nn.functional.normalize(expected, dim=-1)
    torch.testing.assert_close(trainer.cached._final_vectors(rows), expected, rtol=1e-4, atol=1e-5)


# --- Training ---------------------------------------------------------------------------------------------


def test_a_step_ranks_against_keys_and_negatives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = new_trainer(tmp_path / "run")
    assert trainer.cached is not None
    list(trainer.cached.refresh(0, 10))
    batch = trainer.batches.batch(0, 0)
    negatives = len(batch.centers) - 2 * batch.pairs
    assert 0 < negatives <= 2 * batch.pairs
    trainer.model.eval()
    monkeypatch.setattr(trainer.model, "train", lambda mode=True: trainer.model)
    monkeypatch.setattr(Optimizers, "step", lambda self, factor: None)
    with torch.no_grad():
        vectors = trainer.model(batch.without_neighbor_texts(), trainer.cached.for_batch(batch))
        queries, keys, others = batch.by_role(vectors)
        scores = trainer.model.scores(queries, torch.cat([keys, others]))
        assert batch.false_negatives is not None
        scores[batch.false_negatives] = -torch.inf
        expected = -scores.log_softmax(1).diagonal().mean()
    assert trainer._step(trainer.slice_batch(batch)) == pytest.approx(float(expected), rel=1e-5)


def test_gradient_caching_gives_the_same_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for micro in (None, 5):
        trainer = new_trainer(tmp_path / f"{micro}", micro_batch=micro)
        assert trainer.cached is not None
        list(trainer.cached.refresh(0, 10))
        trainer.model.eval()
        monkeypatch.setattr(trainer.model, "train", lambda mode=True: None)
        gradients: dict[str, torch.Tensor] = {}

        def kept(self: Optimizers, factor: float, t: Trainer = trainer, g: Any = gradients) -> None:
            g |= {n: p.grad.to_dense().clone() for n, p in t.model.named_parameters() if p.grad is not None}

        with monkeypatch.context() as patched:
            patched.setattr(Optimizers, "step", kept)
            found.append((trainer._step(trainer.slice_batch(trainer.batches.batch(0, 0))), gradients))
    (loss, one), (other_loss, other) = found
    assert loss == pytest.approx(other_loss, rel=1e-5)
    assert one.keys() == other.keys()
    for name, gradient in one.items():
        torch.testing.assert_close(other[name], gradient, rtol=1e-3, atol=1e-5, msg=name)


def test_training_on_them_is_another_training(whole: Run, tmp_path: Path) -> None:
    plain = trained(tmp_path / "plain", **MINED | {"hard_negatives": 0})
    assert differ(whole, plain)
    first = [next(line["loss"] for line in run.metrics() if "loss" in line) for run in (whole, plain)]
    assert first[0] > first[1]  # more terms in the denominator
    assert not whole.states.exists()


def test_a_killed_run_resumes_to_the_same_numbers(whole: Run, tmp_path: Path) -> None:
    """Wherever the kill comes, be it between the states and what is mined from them."""
    for attempt in range(3, 40, 3):
        with pytest.MonkeyPatch.context() as patched:
            dying = dying_at_rename(attempt, os.rename)
            patched.setattr(os, "rename", dying)
            patched.setattr(os, "replace", dying)
            try:
                run = trained(tmp_path / "run", **MINED)
                break
            except Killed:
                pass
    assert attempt > 6
    assert_same_run(run, whole)


def test_what_was_mined_is_found_again(tmp_path: Path) -> None:
    trainer = new_trainer(tmp_path / "run")
    assert trainer.cached is not None
    list(trainer.cached.refresh(0, 10))
    before = trainer.batches._negatives
    again = new_trainer(tmp_path / "run")
    assert again.cached is not None
    assert not again.cached.needs_refresh(2)
    after = again.batches._negatives
    assert list(before) == list(after) == ["cites"]
    assert np.array_equal(before["cites"].rows, after["cites"].rows)
    assert np.array_equal(before["cites"].queries, after["cites"].queries)
    (trainer.cached.folder / "negatives.npz").unlink()
    third = new_trainer(tmp_path / "run")
    assert third.cached is not None
    assert third.cached.needs_refresh(2)


@pytest.mark.parametrize("model", ["bert", "bert_hgt", "graph_formers"])
def test_every_model_with_a_plm_can_learn_from_them(model: str, tmp_path: Path) -> None:
    run = trained(tmp_path / "run", model=model, **MINED | {"max_steps": 5})
    plain = trained(tmp_path / "plain", model=model, **MINED | {"max_steps": 5, "hard_negatives": 0})
    assert differ(run, plain)


def test_live_states_give_none() -> None:
    with pytest.raises(InputError, match=r"^hard_negatives is 1, but neighbor_states is live; they are"):
        TrainingOptions(hard_negatives=1, neighbor_states="live")
    with pytest.raises(InputError, match=r"^hard_negatives is -1, expected 0 or more"):
        TrainingOptions(hard_negatives=-1, neighbor_states="cached")
