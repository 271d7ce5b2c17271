"""Validation: in the run's precision, in the network's batches, without hidden nodes."""

from __future__ import annotations

from contextlib import AbstractContextManager
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from heterformer.batches.batcher import Batcher
from heterformer.batches.pairs import evaluation_sampler
from heterformer.batches.sampling import SeededSampler
from heterformer.batches.visible import VisibleNetwork
from heterformer.models import Heterformer
from heterformer.models.baselines.mean_sage import MeanSage
from heterformer.models.inference import center_vectors
from heterformer.network.split.draw import make_split
from heterformer.network.split.options import SplitOptions
from heterformer.network.split.pairs import Pairs
from heterformer.network.split.split import TimeCuts
from heterformer.training.loop import Trainer
from heterformer.training.run import Run
from heterformer.training.validation import chance_prec, in_batch_metrics, validated_pairs
from tests.learning import tiny_model, tiny_network, tiny_options, tiny_reader, tiny_tokens
from tests.shop import timed_shop


def test_vectors_are_computed_in_the_precision_and_scores_in_single(monkeypatch: pytest.MonkeyPatch) -> None:
    split = make_split(tiny_network())
    batcher = Batcher(VisibleNetwork.for_evaluation(tiny_network(), split), tiny_tokens())
    model = tiny_model()
    seen: dict[str, list[Any]] = {"vectors": [], "scores": []}
    forward, scores = Heterformer.forward, Heterformer.scores

    def recorded(self: Heterformer, batch: Any, states: Tensor) -> Tensor:
        seen["vectors"].append(torch.is_autocast_enabled("cpu"))
        return forward(self, batch, states)

    def scored(self: Heterformer, queries: Tensor, keys: Tensor, relation: str | None = None) -> Tensor:
        found = scores(self, queries, keys, relation)
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


def test_frequencies_are_taken_from_the_scores_of_keys() -> None:
    split = make_split(tiny_network())
    batcher = Batcher(VisibleNetwork.for_evaluation(tiny_network(), split), tiny_tokens())
    model, pairs = tiny_model(), split.validation
    plain = in_batch_metrics(model, batcher, pairs, 100, 0)
    nodes = tiny_network().schema.counts[tiny_network().schema.target_type]
    same = in_batch_metrics(model, batcher, pairs, 100, 0, log_frequencies=np.full(nodes, 3.0, np.float32))
    assert same == pytest.approx(plain, abs=1e-3)  # what all keys have changes no rank
    rare = np.full(nodes, 1e6, dtype=np.float32)
    rare[pairs[0, 1]] = 0.0  # the first pair's key alone scores high
    first = in_batch_metrics(model, batcher, pairs, 100, 0, log_frequencies=rare)
    assert first["prec"] == pytest.approx(np.mean(pairs[:, 1] == pairs[0, 1]))


def new_trainer(folder: Path, size: int = 100, **options: Any) -> Trainer:
    network, run = copy(tiny_network()), Run(folder)
    network.schema = replace(network.schema, test_batch_size=size)
    chosen = tiny_options(tiny_reader(), **options).resolved()
    run.start(network, chosen)
    return Trainer(network, run, chosen)


def test_training_validates_in_batches_of_the_networks_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = new_trainer(tmp_path, 5)
    metrics = trainer._evaluate()
    pairs, vectors = trainer.split.validation, {}
    for side in (0, 1):
        chosen = (trainer.model, trainer.validation, "paper", pairs[:, side], evaluation_sampler(0))
        vectors[side] = center_vectors(*chosen)
    firsts = 0
    for start in range(0, len(pairs), 5):
        keys = pairs[start : start + 5, 1].tolist()
        scores = trainer.model.scores(vectors[0][start : start + 5], vectors[1][start : start + 5])
        for row, own in zip(scores.tolist(), keys, strict=True):
            best = dict(zip(keys, row, strict=True))
            firsts += all(best[own] > score for key, score in best.items() if key != own)
    assert metrics["prec"] == pytest.approx(firsts / len(pairs))


def test_hidden_nodes_do_not_decide_when_to_stop(tmp_path: Path) -> None:
    trainer = new_trainer(tmp_path, split=SplitOptions(hold_out=0.25))
    hidden = trainer.split.hidden["paper"]
    assert np.isin(trainer.split.validation, hidden).any()
    (pairs,) = trainer.validation_pairs.values()
    assert not np.isin(pairs, hidden).any()
    kept = ~np.isin(trainer.split.validation, hidden).any(1)
    assert np.array_equal(pairs, trainer.split.validation[kept])
    everybody = np.setdiff1d(np.arange(200), hidden)
    shown = trainer.validation.sample("paper", everybody, evaluation_sampler(0))
    (papers,) = [edges for edges in shown.edges if edges.neighbor_type == "paper"]
    assert not np.isin(papers.neighbor, hidden).any()
    assert len(papers.neighbor)


def test_after_a_split_by_time_later_nodes_validate_with_what_they_have(tmp_path: Path) -> None:
    """All of them are hidden from training; their known authors are not hidden from validation."""
    trainer = new_trainer(tmp_path, split=SplitOptions(by="time"))
    (pairs,) = trainer.validation_pairs.values()
    assert np.array_equal(pairs, trainer.split.validation)
    queries = np.unique(pairs[:, 0])
    assert np.isin(queries, trainer.split.hidden["paper"]).all()
    shown = trainer.validation.sample("paper", queries, evaluation_sampler(0))
    neighbors = {edges.neighbor_type: edges.neighbor for edges in shown.edges}
    assert all(len(some) for some in neighbors.values())
    unknown = trainer.batcher.visible.without_texts("author")
    assert len(unknown)
    assert not np.isin(neighbors["author"], unknown).any()
    years = tiny_network().times("paper")
    (papers,) = [edges for edges in shown.edges if edges.neighbor_type == "paper"]
    assert (years[papers.neighbor] <= years[queries[papers.center]]).all()
    assert {"prec", "mrr"} <= trainer._evaluate().keys()


def validated_of_shop(until: float) -> tuple[Pairs, Pairs, NDArray[np.bool_]]:
    """Validation pairs if training ends at that day: all, those that count, and whose users are known."""
    network = timed_shop()
    split = replace(make_split(network, SplitOptions(by="time")), times=TimeCuts(until, 20.0))
    visible = VisibleNetwork.for_validation(network, split)
    times = network.edge_values("bought", "time")
    assert times is not None
    users = network.edges("bought")[0][times < until]
    pairs = validated_pairs(visible, split, network.schema.predicted[0])
    return split.validation, pairs, np.isin(split.validation[:, 0], users)


def test_users_that_training_has_no_link_of_do_not_decide_when_to_stop(
    capsys: pytest.CaptureFixture[str],
) -> None:
    every, pairs, is_known = validated_of_shop(until=3.0)
    assert 0 < is_known.sum() < len(every)
    assert np.array_equal(pairs, every[is_known])
    left_out = f"leaves out {(~is_known).sum()} of {len(every)} validation pairs of 'bought'"
    said = " ".join(capsys.readouterr().err.split())
    assert f"{left_out}, of whose user nodes training has no link." in said


def test_where_all_users_are_strangers_they_are_validated_on(capsys: pytest.CaptureFixture[str]) -> None:
    every, pairs, is_known = validated_of_shop(until=1.0)
    assert not is_known.any()
    assert np.array_equal(pairs, every)
    assert f"validates on {len(every)} of {len(every)} validation pairs" in capsys.readouterr().err


def test_texts_of_hidden_nodes_are_not_prepared_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(MeanSage, "prepare", lambda self, tokens, special, hidden: seen.append(hidden))
    trainer = new_trainer(tmp_path, model="mean_sage", split=SplitOptions(hold_out=0.25))
    trainer._restore_or_warm_up()
    hidden = trainer.split.hidden["paper"] + trainer.tokens.text_offset["paper"]
    assert np.array_equal(np.sort(seen[0]), np.sort(hidden))


def test_the_chance_of_a_pair_is_one_of_the_keys_of_its_batch() -> None:
    pairs = np.array([[0, 7], [1, 7], [2, 8], [3, 9]])
    assert chance_prec(pairs, 4) == pytest.approx(1 / 3)
    assert chance_prec(pairs, 2) == pytest.approx((1 + 1 + 1 / 2 + 1 / 2) / 4)


def test_training_says_when_it_is_no_better_than_chance(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trainer = new_trainer(tmp_path)
    trainer.early.best = 0.01
    trainer.say_result("done")
    assert "no better than chance (0.0" in " ".join(capsys.readouterr().err.split())
    trainer.early.best = 0.9
    trainer.say_result("done")
    assert "chance" not in capsys.readouterr().err


def test_each_node_is_sampled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if it is a query of one pair and the key of another."""
    split, drawn = make_split(tiny_network()), list[int]()
    batcher = Batcher(VisibleNetwork.for_evaluation(tiny_network(), split), tiny_tokens())
    sample = SeededSampler.sample

    def noted(self: SeededSampler, visible: Any, center: str, near: str, rows: Any, *more: Any) -> Any:
        if near == "author":
            drawn.extend(rows.tolist())
        return sample(self, visible, center, near, rows, *more)

    monkeypatch.setattr(SeededSampler, "sample", noted)
    pairs = np.concatenate([split.validation, split.validation[:, ::-1]])
    in_batch_metrics(tiny_model(), batcher, pairs, 100, 0)
    assert sorted(drawn) == np.unique(pairs).tolist()
