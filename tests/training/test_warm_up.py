from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from heterformer.batches.visible import VisibleNetwork
from heterformer.models import Heterformer
from heterformer.models.inference import plm_vectors
from heterformer.models.plm.layouts.bert import BertLayout
from heterformer.network.split.draw import make_split
from heterformer.network.split.options import SplitOptions
from heterformer.network.split.split import Split
from heterformer.training import warm_up as warming
from heterformer.training.loop import Trainer
from heterformer.training.train import train
from heterformer.training.warm_up import TextEdges, WarmUpResult, text_edges, warm_up, warm_up_loss
from heterformer.training.warm_up_options import WarmUpOptions
from tests.learning import tiny_model, tiny_network, tiny_options, tiny_reader, tiny_tokens
from tests.networks import edges_of, few

OPTIONS = WarmUpOptions(warm_up_epochs=3, warm_up_batch_size=64)
Edge = tuple[int, int]  # a textless row and a text number


def warmed(
    model: Heterformer, options: WarmUpOptions = OPTIONS, split: Split | None = None, seed: int = 0
) -> list[WarmUpResult]:
    visible = VisibleNetwork.for_training(tiny_network(), split or make_split(tiny_network()))
    return warm_up(model, visible, tiny_tokens(), options, seed)


def weights(model: Heterformer) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in model.state_dict().items()}


def changed(before: dict[str, Tensor], model: Heterformer) -> set[str]:
    return {name for name, value in model.state_dict().items() if not torch.equal(value, before[name])}


def all_edges(node_type: str) -> set[Edge]:
    """Every edge of a textless type, read from the relation."""
    relation = {"author": "written_by", "venue": "published_in"}[node_type]
    papers, nodes = tiny_network().edges(relation)
    return set(zip(nodes.tolist(), papers.tolist(), strict=True))


def as_set(edges: TextEdges) -> set[Edge]:
    return set(zip(edges.rows.tolist(), edges.texts.tolist(), strict=True))


@pytest.fixture
def trained_on(monkeypatch: pytest.MonkeyPatch) -> dict[str, set[Edge]]:
    """The edges, by textless type, that warm-up steps were made of; texts by their place among those read."""
    found: dict[str, set[Edge]] = {"author": set(), "venue": set()}
    step = warming.warm_up_step

    def recorded(textless: Any, node_type: str, rows: Tensor, places: Tensor, *rest: Any) -> None:
        found[node_type] |= set(zip(rows.tolist(), places.tolist(), strict=True))
        step(textless, node_type, rows, places, *rest)

    monkeypatch.setattr(warming, "warm_up_step", recorded)
    return found


@few
@given(st.integers(1, 9), st.integers(0, 2**32))
def test_the_loss_is_equation_11(size: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    rows, numbers = torch.randint(0, 4, (2, size), generator=generator)
    nodes = torch.randn(4, 3, dtype=torch.float64, generator=generator)[rows]  # W h^(0) of each edge's node
    texts = torch.randn(4, 3, dtype=torch.float64, generator=generator)[numbers]  # h-bar of each edge's text
    total = 0.0
    for p in range(size):
        own = math.exp(texts[p] @ nodes[p])
        negatives = [u for u in range(size) if rows[u] != rows[p] and numbers[u] != numbers[p]]
        total -= math.log(own / (own + sum(math.exp(texts[u] @ nodes[p]) for u in negatives)))
    assert warm_up_loss(nodes, texts, rows, numbers).item() == pytest.approx(total / size, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("node_type", ["author", "venue"])
def test_the_edges_are_those_of_the_network(node_type: str) -> None:
    edges = text_edges(VisibleNetwork.whole(tiny_network()), tiny_tokens(), node_type)
    assert as_set(edges) == all_edges(node_type)
    assert len(edges.rows) == len(all_edges(node_type))


def test_only_the_textless_nodes_learn() -> None:
    model = tiny_model()
    before = weights(model)
    warmed(model)
    textless = {name for name in before if name.startswith("textless.")}
    assert changed(before, model) == textless
    assert [name for name, p in model.named_parameters() if p.grad is not None] == []
    assert all(p.requires_grad for p in model.parameters())
    assert not model.training


@pytest.mark.parametrize("epochs", [1, 4])
def test_the_plm_reads_every_text_once(monkeypatch: pytest.MonkeyPatch, epochs: int) -> None:
    model, read = tiny_model(), list[Tensor]()  # loading it reads a text, too
    embed = BertLayout.embed

    def recorded(plm: BertLayout) -> Tensor:
        read.extend(plm.packing.texts.tokens.split(plm.packing.texts.lengths.tolist()))
        return embed(plm)

    monkeypatch.setattr(BertLayout, "embed", recorded)
    warmed(model, replace(OPTIONS, warm_up_epochs=epochs, warm_up_patience=9))
    assert len(read) == tiny_network().schema.counts["paper"]  # each has an author and a venue
    assert sum(map(len, read)) == len(tiny_tokens().tokens)


@pytest.mark.parametrize(("precision", "half"), [("bf16", True), ("no", False)])
def test_texts_are_read_in_the_precision_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, precision: str, half: bool
) -> None:
    reading, learning = list[bool](), list[bool]()
    read, step = BertLayout.embed, warming.warm_up_step

    def recorded_reading(plm: BertLayout) -> Tensor:
        reading.append(torch.is_autocast_enabled("cpu"))
        return read(plm)

    def recorded_step(
        textless: Any, node_type: str, rows: Any, texts: Any, vectors: Tensor, *rest: Any
    ) -> None:
        learning.append(torch.is_autocast_enabled("cpu") or vectors.dtype != torch.float32)
        step(textless, node_type, rows, texts, vectors, *rest)

    monkeypatch.setattr(BertLayout, "embed", recorded_reading)
    monkeypatch.setattr(warming, "warm_up_step", recorded_step)
    monkeypatch.setattr(
        Trainer, "_validation_metrics", lambda *_, **__: dict.fromkeys(("prec", "mrr", "ndcg"), 0.0)
    )
    train(tiny_network(), tmp_path / "run", tiny_options(tiny_reader(), max_steps=0, precision=precision))
    assert any(reading) == half  # what is loaded is tried once, in full precision
    assert learning
    assert not any(learning)


def test_nodes_come_closer_to_their_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    figures = iter(range(99))
    monkeypatch.setattr(warming, "_reciprocal_rank", lambda *_: next(figures))  # the last epoch is the best
    model = tiny_model()
    edges = text_edges(VisibleNetwork.whole(tiny_network()), tiny_tokens(), "author")
    rows, numbers = torch.from_numpy(edges.rows), torch.from_numpy(edges.texts)
    vectors = plm_vectors(model, tiny_tokens(), edges.texts).clone()

    def loss() -> float:
        return warm_up_loss(model.textless("author", rows), vectors, rows, numbers).item()

    before = loss()
    warmed(model, replace(OPTIONS, warm_up_epochs=10, warm_up_learning_rate=0.05))
    assert loss() < before - 0.5


def test_held_out_edges_are_not_trained_on(trained_on: dict[str, set[Edge]]) -> None:
    warmed(tiny_model(), replace(OPTIONS, warm_up_patience=9), seed=5)
    for number, node_type in enumerate(("author", "venue")):
        everything = text_edges(VisibleNetwork.whole(tiny_network()), tiny_tokens(), node_type)
        _, held_out = everything.divided(np.random.default_rng([5, number]))
        assert as_set(held_out)
        assert trained_on[node_type] == all_edges(node_type) - as_set(held_out)


@few
@given(st.lists(st.integers(0, 12), min_size=1, max_size=80), st.integers(0, 2**32))
def test_a_held_out_edge_is_of_a_node_that_keeps_another(rows: list[int], seed: int) -> None:
    edges = TextEdges(np.array(rows), np.arange(len(rows)))
    train, held_out = edges.divided(np.random.default_rng(seed))
    assert as_set(train) | as_set(held_out) == as_set(edges)
    assert not as_set(train) & as_set(held_out)
    assert len(set(held_out.rows)) == len(held_out.rows) <= len(rows) // 10
    assert set(held_out.rows) <= set(train.rows)


def test_hidden_nodes_are_not_trained_on(trained_on: dict[str, set[Edge]]) -> None:
    split = make_split(tiny_network(), SplitOptions(hold_out=0.25))
    hidden = set(split.hidden["paper"].tolist())
    model = tiny_model()
    before = weights(model)
    warmed(model, split=split)
    seen = text_edges(VisibleNetwork.for_training(tiny_network(), split), tiny_tokens(), "author")
    assert len(hidden) > 20
    assert as_set(seen) == {edge for edge in all_edges("author") if edge[1] not in hidden}
    read = sorted(set(range(tiny_network().schema.counts["paper"])) - hidden)
    trained = {(row, read[place]) for row, place in trained_on["author"]}
    assert trained < as_set(seen)
    assert len(trained) > 0.8 * len(as_set(seen))

    moved = (model.textless.tables[0].weight != before["textless.tables.0.weight"]).any(1)
    lonely = set(range(len(moved))) - set(seen.rows.tolist())
    assert lonely
    assert not moved[sorted(lonely)].any()


def test_the_predicted_relation_has_no_part_in_it() -> None:
    """Held-out pairs join papers; the warm-up reads authors and venues and so cannot see them."""
    assert edges_of(tiny_network(), "cites")
    split = make_split(tiny_network())
    for node_type in tiny_network().schema.textless:
        shown = VisibleNetwork.for_training(tiny_network(), split)
        assert as_set(text_edges(shown, tiny_tokens(), node_type)) == all_edges(node_type)


def test_stops_when_patience_is_used_up() -> None:
    options = replace(OPTIONS, warm_up_epochs=30, warm_up_learning_rate=1e-30, warm_up_patience=2)
    results = warmed(tiny_model(), options)
    assert [r.epochs for r in results] == [3, 3]  # the first is the best, two are no better
    assert [r.mrr for r in results] == [r.untrained for r in results]


def test_keeps_the_best_weights_it_met(monkeypatch: pytest.MonkeyPatch) -> None:
    met: list[Tensor] = []
    figures = iter([0.1, 0.2, 0.5, 0.4, 0.3, *[0.0] * 99])  # untrained, then epoch by epoch

    def figure(textless: Any, node_type: str, *_: Any) -> float:
        if node_type == "author":
            met.append(textless.tables[0].weight.detach().clone())
        return next(figures)

    monkeypatch.setattr(warming, "_reciprocal_rank", figure)
    model = tiny_model()
    author, _ = warmed(model, replace(OPTIONS, warm_up_epochs=30, warm_up_patience=2))
    assert (author.epochs, author.mrr, author.untrained) == (4, 0.5, 0.1)
    assert torch.equal(model.textless.tables[0].weight, met[2])
    assert not torch.equal(met[2], met[4])


def test_without_edges_to_spare_there_is_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = TextEdges(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
    monkeypatch.setattr(TextEdges, "divided", lambda self, rng: (self, nothing))
    model = tiny_model()
    before = weights(model)
    results = warmed(model, replace(OPTIONS, warm_up_patience=1))
    assert [(r.epochs, r.mrr, r.untrained) for r in results] == [(3, None, None)] * 2
    assert changed(before, model)


def test_is_the_same_every_time() -> None:
    model, again, other = tiny_model(), tiny_model(), tiny_model()
    assert warmed(model, seed=1) == warmed(again, seed=1)
    warmed(other, seed=2)
    assert changed(weights(model), again) == set()
    assert changed(weights(model), other) != set()


@pytest.mark.parametrize("options", [{"textless_dim": 3}, {"heterogeneous_projection": False}])
def test_every_textless_type_gets_its_figures(options: dict[str, Any]) -> None:
    results = warmed(tiny_model(**options))
    assert [r.node_type for r in results] == ["author", "venue"]
    assert all(0 <= figure <= 1 for r in results for figure in (r.mrr, r.untrained))
