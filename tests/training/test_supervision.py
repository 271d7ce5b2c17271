"""Learning from labels: what is learnt, that it resumes, and that nothing is learnt from noise."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch

from heterformer.batches.labelled import LabelledBatches
from heterformer.errors import InputError
from heterformer.metrics import classification_metrics
from heterformer.network.build.frames import temporary_folder
from heterformer.network.split.options import SplitOptions
from heterformer.network.store import Network
from heterformer.network.stratified import TEST, TRAIN, VALIDATION
from heterformer.network.targets import node_targets
from heterformer.training.figure import draw_run
from heterformer.training.loop import Trainer
from heterformer.training.options import TrainingOptions
from heterformer.training.run import Run
from heterformer.training.supervision import head_config, target_metrics
from heterformer.training.supervision_options import SupervisionOptions
from heterformer.training.train import train
from tests.learning import WORDS, sharp_reader, tiny_network, tiny_options
from tests.pictures import check_picture
from tests.training.runs import EVERYTHING, LAST, assert_same_run, differ, options, trained

STEPS = 12
LABELS = SupervisionOptions(type="paper", min_members=5)


def supervised(**changes: Any) -> TrainingOptions:
    usual: dict[str, Any] = {"tasks": ("classification",), "labels": LABELS, "max_steps": STEPS}
    return options(**usual | {"evaluate_every": 6} | changes)


def new_trainer(path: Path, **changes: Any) -> Trainer:
    run, asked = Run(path), supervised(**changes).resolved()
    run.start(tiny_network(), asked)
    return Trainer(tiny_network(), run, asked)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(tiny_network(), tmp_path_factory.mktemp("whole") / "run", supervised())


def test_a_run_that_was_stopped_ends_the_same(whole: Run, tmp_path: Path) -> None:
    train(tiny_network(), tmp_path / "run", supervised(max_steps=6))
    assert_same_run(train(tiny_network(), tmp_path / "run", supervised()), whole)


@pytest.mark.parametrize("tasks", [("classification",), ("link_prediction", "classification")])
def test_cached_states_resume_too(tasks: tuple[str, ...], tmp_path: Path) -> None:
    changes: dict[str, Any] = {"tasks": tasks, "neighbor_states": "cached", "refresh_every": 6}
    undisturbed = train(tiny_network(), tmp_path / "whole", supervised(**changes))
    train(tiny_network(), tmp_path / "parts", supervised(max_steps=6, **changes))
    assert_same_run(train(tiny_network(), tmp_path / "parts", supervised(**changes)), undisturbed)
    metrics = undisturbed.metrics()[-1]["validation"]
    assert ("prec" in metrics) == ("link_prediction" in tasks)
    assert "macro" in metrics


def test_the_head_is_saved_with_the_model(whole: Run) -> None:
    model = whole.model()
    assert model.head is not None
    assert model.head.config.node_type == "paper"
    again = type(model).from_pretrained(whole.path)
    assert again.head is not None
    for name, value in model.state_dict().items():
        assert torch.equal(again.state_dict()[name], value), name


def test_links_alone_are_as_ever(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", max_steps=2)
    assert run.model().head is None
    assert run.options().supervised_task is None


def test_gradients_reach_the_whole_model(tmp_path: Path) -> None:
    trainer = new_trainer(tmp_path / "run")
    trainer.model.eval()
    (batch,) = trainer.supervision.batches.of_run_step(0)  # type: ignore[union-attr]
    trainer._learn_labels(batch)
    missing = [name for name, p in trainer.model.named_parameters() if p.grad is None]
    assert not [name for name in missing if name.startswith(("head.", "backbone.embeddings"))]
    assert any(p.grad is not None for n, p in trainer.model.named_parameters() if n.startswith("textless."))


def test_losses_of_parts_are_that_of_the_whole(tmp_path: Path) -> None:
    one, many = (new_trainer(tmp_path / str(n), micro_batch=n) for n in (16, 5))
    many.model.load_state_dict(one.model.state_dict())
    gradients = []
    for trainer in (one, many):
        trainer.model.eval()
        losses = [trainer._learn_labels(b) for b in trainer.supervision.batches.of_run_step(0)]  # type: ignore[union-attr]
        head = trainer.model.head
        assert head is not None
        gradients.append((sum(losses), head.layers[0].weight.grad))
    assert gradients[0][0] == pytest.approx(gradients[1][0], rel=1e-5)
    torch.testing.assert_close(gradients[0][1], gradients[1][1], rtol=1e-4, atol=1e-6)


def test_a_step_has_every_training_node_once_an_epoch(tmp_path: Path) -> None:
    batches = new_trainer(tmp_path / "run").supervision.batches  # type: ignore[union-attr]
    steps = [_rows(batches, step) for step in range(batches.steps_per_epoch + 1)]
    assert sorted(row for rows in steps[:-1] for row in rows) == batches.targets.rows.tolist()
    assert steps[-1] != steps[0]  # another order in the next epoch
    assert _rows(batches, 0) == steps[0]


def _rows(batches: LabelledBatches, step: int) -> list[int]:
    """Rows of papers, which are the only texts of the network."""
    return [int(r) for b in batches.of_run_step(step) for r in b.text_rows[b.centers]]  # type: ignore[index]


def test_labels_of_textless_nodes(tmp_path: Path) -> None:
    labels = SupervisionOptions(type="author", min_members=5)
    run = train(tiny_network(), tmp_path / "run", supervised(labels=labels, max_steps=6))
    assert run.metrics()[-1]["validation"]["macro"] > 0
    with pytest.raises(InputError, match="BERT has no vectors of author nodes"):
        train(tiny_network(), tmp_path / "bert", supervised(labels=labels, model="bert"))
    assert not (tmp_path / "bert").exists()


@pytest.mark.parametrize("tasks", [("classification",), ("link_prediction", "classification")])
def test_labels_of_nodes_that_training_must_not_see_are_not_learnt_from(
    tasks: tuple[str, ...], tmp_path: Path
) -> None:
    every = node_targets(tiny_network(), "classification", LABELS)
    trainer = new_trainer(tmp_path / "held-out", tasks=tasks, split=SplitOptions(hold_out=0.2))
    hidden, targets = trainer.split.hidden["paper"], trainer.supervision.targets  # type: ignore[union-attr]
    for part in (TRAIN, VALIDATION):
        expected = np.setdiff1d(every.of_part(part).rows, hidden)
        assert np.array_equal(targets.of_part(part).rows, expected)
    assert np.isin(hidden, targets.of_part(TEST).rows).any()
    assert not set(_rows(trainer.supervision.batches, 0)) & set(hidden.tolist())  # type: ignore[union-attr]


def test_after_a_split_by_time_later_labels_validate(tmp_path: Path) -> None:
    labels = replace(LABELS, split_by="time", min_members=10)
    trainer = new_trainer(tmp_path / "run", split=SplitOptions(by="time"), labels=labels)
    targets, hidden = trainer.supervision.targets, trainer.split.hidden["paper"]  # type: ignore[union-attr]
    assert not np.isin(targets.of_part(TRAIN).rows, hidden).any()
    assert np.isin(targets.of_part(VALIDATION).rows, hidden).any()
    assert trainer._validation_metrics("validating")["micro"] >= 0


def test_an_attribute_that_is_the_label_is_refused(tmp_path: Path) -> None:
    asked = {"tasks": ("classification",), "labels": SupervisionOptions(type="paper"), "max_steps": 1}
    network = planted(attributes=("label",))
    with pytest.raises(InputError, match="attribute 'label' leaks the label of paper nodes"):
        train(network, tmp_path / "run", learning(**asked, attribute_token=True))
    assert not (tmp_path / "run").exists()
    assert train(network, tmp_path / "run", learning(**asked)).is_complete  # which reads no attribute


def test_numbers_are_learnt(tmp_path: Path) -> None:
    network = planted()
    labels = SupervisionOptions(type="paper", column="size")
    run = train(network, tmp_path / "run", learning(tasks=("regression",), labels=labels, max_steps=40))
    best = max(line["validation"]["r2"] for line in run.metrics() if "validation" in line)
    assert best > 0.5


# --- What needs both text and neighbours ------------------------------------------------------------------


@cache
def planted(shuffled: bool = False, attributes: tuple[str, ...] = ()) -> Network:
    """Even papers have a label: a word of their own, and the word that the odd papers of their group have."""
    rng = np.random.default_rng(0)
    words, count, groups = WORDS[10:14], 400, 40
    group = np.arange(count) // 2 % groups
    own, shared = rng.integers(0, 2, count), rng.integers(0, 2, groups)[group]
    even = np.arange(count) % 2 == 0
    telling = [words[own[i]] if even[i] else words[2 + shared[i]] for i in range(count)]
    noise = rng.choice(WORDS[20:60], (count, 16))  # that a model must learn not to read
    texts = [" ".join([*noise[i], telling[i]]) for i in range(count)]
    codes = rng.permutation(2 * own + shared) if shuffled else 2 * own + shared
    ids = [f"p{i:03}" for i in range(count)]
    table = pl.DataFrame(
        {
            "id": ids,
            "text": texts,
            "label": [f"c{codes[i]}" if even[i] else None for i in range(count)],
            "size": [float(10 * own[i]) if even[i] else None for i in range(count)],
        }
    )
    ends = [(i, j) for i in range(0, count, 2) for j in range(1, count, 2) if group[i] == group[j]]
    cites = pl.DataFrame([(ids[i], ids[j]) for i, j in ends], schema=["a", "b"], orient="row")
    paper: dict[str, Any] = {"text": ["text"], "label": "label", "keep": ["size"]}
    nodes = {"paper": paper | ({"attributes": list(attributes)} if attributes else {})}
    relations = {"cites": {"from": "paper", "to": "paper", "columns": ["a", "b"]}}
    return Network.from_frames({"nodes": nodes, "relations": relations}, {"paper": table}, {"cites": cites})


@cache
def reader() -> str:
    return sharp_reader(temporary_folder(), seed=0)


def learning(**changes: Any) -> TrainingOptions:
    usual: dict[str, Any] = {
        "tasks": ("classification",),
        "labels": SupervisionOptions(type="paper"),
        "evaluate_every": 20,
        "patience": 100,
        "batch_size": 32,
        "learning_rate": 1e-3,
        "new_learning_rate": 1e-3,
    }
    return tiny_options(reader(), **usual | changes)


def held_out_f1(run: Run, network: Network) -> float:
    """Micro F1 of the test part, by the trainer's own view of the network."""
    trainer = Trainer(network, run, run.options())
    run.load_best(trainer.model)
    assert trainer.supervision is not None
    return trainer.supervision.metrics(trainer.validation, TEST)["micro"]


def test_shuffled_labels_give_chance(tmp_path: Path) -> None:
    network = planted(shuffled=True)
    run = train(network, tmp_path / "run", learning(max_steps=60))
    assert held_out_f1(run, network) < 0.5  # of four classes, 40 test nodes


def test_heads_have_the_targets_units() -> None:
    network = planted()
    targets = node_targets(network, "regression", SupervisionOptions(type="paper", column="size"))
    config = head_config(targets, SupervisionOptions())
    numbers = targets.of_part(TRAIN).values
    assert config.mean == pytest.approx(float(numbers.mean()))
    assert config.scale == pytest.approx(float(numbers.std()))


def test_metrics_are_those_of_the_decided_classes(whole: Run) -> None:
    targets = node_targets(tiny_network(), "classification", LABELS).of_part(VALIDATION)
    head = whole.model().head
    assert head is not None
    outputs = torch.randn(len(targets), len(targets.classes))
    predicted = np.eye(len(targets.classes), dtype=bool)[outputs.argmax(-1).numpy()]
    assert target_metrics(head, outputs, targets) == classification_metrics(targets.truth, predicted)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"tasks": ()}, "is empty"),
        ({"tasks": ("link_prediction", "link_prediction")}, "are link_prediction, link_prediction"),
        ({"tasks": ("classification", "regression")}, "expected link_prediction, classification"),
        ({"watch": "mrr"}, "is 'mrr', expected one of macro, micro"),
        ({"tasks": ("link_prediction",), "watch": "macro"}, "expected one of prec, mrr, ndcg"),
        ({"hard_negatives": 2, "neighbor_states": "cached"}, "need the task link_prediction"),
        ({"layer_decay": 0.0}, "is 0.0, expected a factor"),
    ],
)
def test_odd_options(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        supervised(**changes)


@pytest.mark.parametrize(
    "changes", [{"loss_weight": 0}, {"smoothing": 1.0}, {"head_width": -1}, {"head_dropout": 1.5}]
)
def test_odd_label_options(changes: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(changes))):
        SupervisionOptions(**changes)


def test_other_tasks_are_another_run(whole: Run) -> None:
    with pytest.raises(InputError, match="cannot resume with tasks changed"):
        train(tiny_network(), whole.path, supervised(tasks=("link_prediction",)))
    assert not differ(whole, whole, LAST[0])
    assert all((whole.path / file).exists() for file in EVERYTHING)


def test_figure_and_card_have_the_watched_metric(whole: Run, tmp_path: Path) -> None:
    (picture,) = draw_run(whole, tmp_path)
    check_picture(picture)
    card = (whole.path / "README.md").read_text()
    assert "Validation macro F1" in card
    assert "the classes of paper nodes" in card
    assert "in-batch negatives" not in card
