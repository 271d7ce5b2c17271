"""The parts of a student's loss."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from heterformer.batches.visible import VisibleNetwork
from heterformer.distillation.options import DistillOptions
from heterformer.distillation.training import StoredVectors, StudentTrainer, student_vectors
from heterformer.models.plm.loading import load_plm, load_tokenizer
from heterformer.models.student import Student
from heterformer.network.split.draw import make_split
from heterformer.network.split.options import SplitOptions
from tests.learning import tiny_model, tiny_network, tiny_reader, tiny_tokens

OPTIONS = DistillOptions(batch_size=8, negatives=16, learning_rate=1e-2)


def trainer(options: DistillOptions = OPTIONS, split: SplitOptions | None = None) -> StudentTrainer:
    network, tokens = tiny_network(), tiny_tokens()
    plm, _ = load_plm(tiny_reader())
    student = Student(plm, load_tokenizer(tiny_reader()), "cls", False, 32, {})
    rng = np.random.default_rng(0)
    stored = StoredVectors({"paper": rng.normal(size=(len(tokens), 16)).astype(np.float32)}, tokens)
    division = make_split(network, split)
    visible = VisibleNetwork.for_training(network, division)
    return StudentTrainer(student, stored, visible, division, tiny_model(), options)


def without_dropout(made: StudentTrainer) -> StudentTrainer:
    for module in made.student.plm.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    for layer in made.student.plm.encoder.layer:
        layer.attention.self.attention_dropout = 0.0
    return made


def test_a_step_is_a_function_of_its_number() -> None:
    one, two = without_dropout(trainer()), without_dropout(trainer())
    assert one.loss(3) == two.loss(3)
    assert one.loss(3) != one.loss(4)


def test_the_ranking_is_weighted() -> None:
    plain, with_ranking = (without_dropout(trainer(replace(OPTIONS, ranking_weight=w))) for w in (0.0, 1.0))
    assert float(with_ranking.loss(0)) > float(plain.loss(0)) + 0.5


def test_steps_lower_the_loss() -> None:
    made = trainer(replace(OPTIONS, epochs=2))
    before = float(made.loss(0).detach())
    made.train()
    assert float(made.loss(0).detach()) < before
    assert made.best >= 0


def test_hidden_nodes_are_neither_learnt_nor_ranked() -> None:
    made = trainer(split=SplitOptions(hold_out=0.2))
    hidden = made.visible.hidden["paper"]
    assert len(hidden)
    assert not np.isin(hidden, made.candidates).any()
    assert not np.isin(hidden + made.stored.tokens.text_offset["paper"], made.text_rows).any()


def test_after_a_split_by_time_it_validates_on_later_queries() -> None:
    """All of which are hidden from training."""
    made = trainer(split=SplitOptions(by="time"))
    assert np.isin(made.split.validation[:, 0], made.visible.hidden["paper"]).all()
    assert 0 <= made.validation_prec() <= 1  # of no pairs it is NaN


def test_vectors_come_in_the_order_of_the_rows() -> None:
    made = trainer()
    rows = np.array([7, 3, 7])
    vectors = student_vectors(made.student, made.stored.tokens, rows)
    texts = [str(tiny_network().texts("paper")[row]) for row in rows]
    np.testing.assert_allclose(vectors.numpy(), made.student.encode(texts), atol=1e-5)
    np.testing.assert_array_equal(made.stored(rows).numpy(), made.stored.of_nodes("paper", rows).numpy())
