"""Distillation: a plain encoder learns a run's vectors from the texts alone."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from heterformer.arrays import Ints
from heterformer.batches.pairs import evaluation_sampler
from heterformer.batches.visible import VisibleNetwork
from heterformer.device import chosen_precision, computing_in
from heterformer.distillation.options import DistillOptions
from heterformer.distillation.training import StoredVectors, StudentTrainer, student_vectors
from heterformer.embedding.embed import embed_to
from heterformer.embedding.options import EmbedOptions
from heterformer.embedding.two_passes import model_digest
from heterformer.errors import InputError
from heterformer.evaluation.link_prediction import PairSet
from heterformer.evaluation.model_ranking import ModelVectors
from heterformer.evaluation.open_run import OpenRun
from heterformer.evaluation.pair_ranking import rank_pairs
from heterformer.metrics import ALONE
from heterformer.models.backbone_encoder import BackboneEncoder
from heterformer.models.plm.loading import load_plm
from heterformer.models.student import Student
from heterformer.network.schema import NodeType
from heterformer.progress import say
from heterformer.states.neighbor_states import stored_neighbor_states
from heterformer.states.vector_cache import VectorsOf


@dataclass(frozen=True)
class Distillation:
    """A student's folder and its figures."""

    path: Path
    """The student's folder."""
    step: int
    """The step whose weights it has."""
    validation_prec: float
    """PREC of the validation pairs, queries being read by the student."""
    pairs: int
    """Number of test pairs."""
    test: dict[str, dict[str, float]]
    """By who reads the queries, 'student' or 'model' (the run's model, queries alone): PREC, MRR, NDCG and
    the full ranking of the test pairs. Keys are the run's vectors in both."""
    seconds: float
    """How long it took."""
    onnx_difference: float | None = None
    """The largest difference between the vectors of the ONNX file and the student's own, if exported."""


def distilled_student(opened: OpenRun, out: Path, options: DistillOptions) -> tuple[Distillation, Student]:
    """Train a student of a run; gives it with its figures. The folder ``out`` is yet to be written."""
    started = time.monotonic()
    student = _new_student(opened)
    with tempfile.TemporaryDirectory(prefix="heterformer-") as folder:
        say(f"{opened.run.path}: computing the vectors to learn.")
        training = VisibleNetwork.for_training(opened.network, opened.split)
        to_learn = _stored(opened, training, Path(folder) / "vectors")
        trainer = StudentTrainer(student, to_learn, training, opened.split, opened.model, options)
        step = trainer.train()
        test = _test(opened, student)
    result = Distillation(out, step, trainer.best, len(opened.split.test), test, time.monotonic() - started)
    student.plm.to(torch.device("cpu")).eval()
    student.about = {**student.about, "test": result.test, "validation_prec": result.validation_prec}
    return result, student


def _new_student(opened: OpenRun) -> Student:
    model, folder = opened.model, opened.run.path
    if not isinstance(model, BackboneEncoder):
        name = model.config.options_class.display_name
        raise InputError(f"{folder}: its model ({name}) has no text encoder, expected one with a backbone.")
    if not opened.run.is_complete:
        raise InputError(f"{folder}: is not trained to the end; finish its training first.")
    plm, _ = load_plm(folder)  # as an encoder of its own family
    config = model.config
    tokenizer, limit = opened.model.tokenizer, model.schema.max_tokens
    about = {"weights": model_digest(opened.run.model()), "network": opened.network.fingerprint}
    return Student(plm.to(model.device), tokenizer, config.readout, bool(config.normalize), limit, about)


def _stored(opened: OpenRun, visible: VisibleNetwork, folder: Path) -> StoredVectors:
    """The vectors of all nodes in a folder, from what is visible of the network."""
    options = EmbedOptions(seed=opened.seed)
    vectors = embed_to(folder, opened.run.model(), opened.network, options, visible=visible)
    matrices = {node_type: vectors.matrix(node_type) for node_type in vectors.types}
    return StoredVectors(matrices, opened.batcher.tokens)


def _test(opened: OpenRun, student: Student) -> dict[str, dict[str, float]]:
    """Link prediction of the test pairs with queries read alone, by the model and by the student.

    Keys are those of ``evaluate``, so that its figures of queries alone are the model's here.
    """
    relation, tokens = opened.network.schema.predicted[0], opened.batcher.tokens
    pairs = PairSet("test", relation, opened.split.test)

    def by_student(node_type: NodeType, rows: Ints) -> Tensor:
        return student_vectors(student, tokens, rows + tokens.text_offset[node_type])

    test = {}
    sampler = evaluation_sampler(opened.seed)
    device = opened.model.device
    with (
        computing_in(chosen_precision("auto", device), device),
        stored_neighbor_states(opened.model, opened.batcher, sampler, opened.run.path) as states,
    ):
        read = ModelVectors(opened.model, opened.batcher, opened.seed, states, folder=opened.run.path)
        readers: dict[str, VectorsOf] = {"model": read.cached_alone, "student": by_student}
        for name, reader in readers.items():
            visible = opened.batcher.visible
            (ranks,) = rank_pairs([pairs], read.cached, visible, read.scorer, read_alone=reader)
            metrics = ranks.result(pairs, opened.network.schema).metrics
            test[name] = {n.removeprefix(ALONE): v for n, v in metrics.items() if n.startswith(ALONE)}
    return test
